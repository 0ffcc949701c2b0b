"""Which file holds the model of a program; loads it when first asked. Knows names only, no I/O of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from harness.programs.model import Program

# A new model goes into the file of its kind (`PROGRAMS` there), and its name into this list.
FILES = {
    "archives": "zip unzip zipinfo ar 7z cpio tar gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat",
    "awk": "awk gawk mawk original-awk nawk",
    "build_tools": (
        "make gmake cmake ctest ninja meson just task bazel bazelisk shellcheck shfmt yamllint hadolint actionlint buf"
    ),
    "c_tools": "gcc g++ cc c++ clang clang++ as ld clang-format clang-tidy protoc nm objdump readelf size",
    "containers": "docker podman docker-compose kubectl helm terraform tofu ansible-playbook vagrant minikube kind",
    "coreutils": (
        "ls dir vdir cat cp mv install ln rm unlink link rmdir mkdir touch chmod chown chgrp stat du df dirname "
        "basename realpath readlink mktemp dd truncate tee sync shred mkfifo mknod date hostname uptime who users "
        "uname whoami id groups logname hostid arch nproc tty printenv sleep yes seq expr factor"
    ),
    "elevation": (
        "sudo doas su runuser pkexec chroot unshare setsid systemd-run ssh-agent dbus-run-session xvfb-run "
        "fakeroot busybox toybox"
    ),
    "find": "find",
    "gh": "gh",
    "git": "git",
    "go_tools": "go gofmt golangci-lint staticcheck goimports gofumpt",
    "interpreters": (
        "perl ruby php lua luajit Rscript julia java tclsh osascript expect pwsh sqlite3 psql mysql ed ex vi vim "
        "nvim nano emacs m4 gdb lldb R node nodejs deno bun ts-node tsx"
    ),
    "javascript_packages": "npm npx pnpx bunx pnpm yarn corepack nvm fnm volta",
    "javascript_tools": (
        "tsc eslint prettier stylelint markdownlint markdownlint-cli2 jest vitest mocha ava playwright cypress "
        "vite webpack rollup esbuild next ng nx turbo lerna gulp grunt nodemon serve http-server"
    ),
    "language_tools": (
        "mvn mvnw mvnd gradle gradlew sbt ant lein javac bundle bundler gem rake rspec rubocop composer phpunit "
        "mix dotnet msbuild swift xcodebuild dart flutter"
    ),
    "network": "curl wget ping dig host nslookup traceroute whois nc openssl ssh scp rsync",
    "never_covered": (
        "ack jshell ldd locate stty zgrep open xdg-open telnet ftp sftp at batch bwrap firejail nsenter parallel "
        "runcon screen setpriv sg sshpass tmux"
    ),
    "processes": (
        "ps pgrep pidof pstree top kill pkill killall free w vmstat iostat lsof lscpu lsblk lsusb lspci lsmod "
        "lsb_release sw_vers nvidia-smi sysctl getconf getent locale crontab useradd userdel usermod groupadd "
        "groupdel groupmod adduser deluser passwd chpasswd chage gpasswd clear tput"
    ),
    "python": "python python2 python3 pypy pypy3",
    "python_packages": "pip pip3 uv uvx poetry pipenv twine hatch flit pdm conda mamba micromamba pipx virtualenv",
    "python_tools": (
        "ruff black isort flake8 pylint bandit vulture mypy pyright basedpyright pytest py.test tox nox coverage "
        "pre-commit sphinx-build mkdocs alembic django-admin ipython ipython3 jupyter"
    ),
    "rust_tools": "cargo rustc rustfmt rustup",
    "search": "grep egrep fgrep rg ag fd fdfind tree which whereis ctags",
    "sed": "sed",
    "shells": (
        "echo printf true false : pwd test [ type exit return break continue wait jobs times help umask bash sh "
        "dash ash zsh ksh mksh fish csh tcsh yash rbash eval command builtin exec"
    ),
    "system": (
        "systemctl service journalctl timedatectl hostnamectl dmesg mount umount findmnt ip ss netstat ifconfig "
        "apt apt-get apt-cache apt-mark dpkg dpkg-query rpm dnf yum zypper apk brew pacman"
    ),
    "text": (
        "head tail wc sort uniq cut tr numfmt paste join comm nl od xxd hexdump hd fold fmt column expand unexpand "
        "rev tac shuf split csplit iconv base64 base32 basenc md5sum b2sum sha1sum sha224sum sha256sum sha384sum "
        "sha512sum cksum sum diff cmp patch strings file jq less more bc tsort man cal ncal"
    ),
    "wrappers": (
        "env timeout time nice ionice nohup stdbuf chrt taskset numactl prlimit flock xargs strace ltrace valgrind "
        "hyperfine watch script entr unbuffer"
    ),
}

_file_of: dict[str, str] = {}
_models: dict[str, Program | None] = {}


def model_of(name: str) -> Program | None:
    """Return the model of the program `name` (without a folder), or None if there is none."""
    if name not in _models:
        if not _file_of:
            _file_of.update((program, file) for file, programs in FILES.items() for program in programs.split())
        file = _file_of.get(name)
        _models[name] = None if file is None else import_module(f"harness.programs.{file}").PROGRAMS[name]
    return _models[name]


def names() -> Iterator[str]:
    """Yield the name of every program that has a model."""
    for programs in FILES.values():
        yield from programs.split()
