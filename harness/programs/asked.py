"""Programs whose model is one row of a table. Harness asks about most of them, with a better question than for an
unknown program.

rows.py describes a row: the program and its subcommands, their act, operands and options. Only a row with `looks`, and
without `net` and `needs`, may run unasked. To add a program, add its row here and its examples to
tests/programs/asked.txt.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.programs.program import Program
from harness.programs.rows import Rows

_TABLE = r"""
systemd = the socket of systemd, or of the system's message bus

# --- Programs that no model vouches for, whatever their words
ack : gap : ack takes options, a pager among them, from an .ackrc in the project
jshell : gap : it writes into the home folder and runs what it reads
ldd : gap : it may run the program that it looks at (ldd(1), Security)
locate : gap : it lists names of the whole machine, from a database of any path
stty : gap : it changes the terminal
zgrep : gap : it is a shell script that runs gzip and grep on names it puts together
open/xdg-open : gap : it starts whatever is meant for the file
telnet/ftp/sftp : gap : it takes commands from its input, and `!` runs one here
at/batch/bwrap/firejail/nsenter/parallel/runcon/screen/setpriv/sg/sshpass/tmux : gap : its model does not vouch for what it
    runs

# --- Processes, hardware, users
pgrep : looks : TEXT : -d|--delimiter=TEXT -l|--list-name -a|--list-full -v|--inverse -w|--lightweight -c|--count -f|--full
    -g|--pgroup=TEXT -G|--group=TEXT -i|--ignore-case -n|--newest -o|--oldest -O|--older=TEXT -P|--parent=TEXT
    -s|--session=TEXT -t|--terminal=TEXT -u|--euid=TEXT -U|--uid=TEXT -x|--exact -F|--pidfile=READ -r|--runstates=TEXT
    -V|--version:info -h|--help:info
pidof : looks : TEXT... : -s -c -x -q -o=TEXT
pstree : looks : TEXT : -a -c -p -u -s -l -n -h -T -A -U -g -t -V|--version:info
kill/pkill/killall/useradd/usermod/groupadd/groupmod/adduser/passwd/chpasswd/chage/gpasswd/service : changes words : TEXT...
free : looks : - : -b|--bytes -k|--kibi -m|--mebi -g|--gibi --mega --giga -h|--human --si -l|--lohi -t|--total
    -v|--committed -s|--seconds=TEXT -c|--count=TEXT -w|--wide --help:info -V|--version:info
w : looks : TEXT : -h|--no-header -s|--short -f|--from -i|--ip-addr
vmstat : looks : TEXT TEXT : -a|--active -f|--forks -m|--slabs -n|--one-header -s|--stats -d|--disk -D|--disk-sum
    -S|--unit=TEXT -w|--wide -t|--timestamp -y|--no-first -V|--version:info -h|--help:info
iostat : looks : TEXT... : -c -d -h -k -m -N -p=TEXT -s -t -x -y -z -V:info
lscpu : looks : - : -a|--all -b|--online -B|--bytes -C|--caches[=TEXT] -c|--offline -J|--json -e|--extended[=TEXT]
    -p|--parse[=TEXT] -x|--hex -y|--physical --output-all -V|--version:info -h|--help:info
lsblk : looks : READ... : -a|--all -b|--bytes -d|--nodeps -D|--discard -f|--fs -i|--ascii -J|--json -l|--list -m|--perms
    -n|--noheadings -o|--output=TEXT -O|--output-all -p|--paths -P|--pairs -r|--raw -s|--inverse -S|--scsi -t|--topology
    -x|--sort=TEXT -e|--exclude=TEXT -I|--include=TEXT -V|--version:info -h|--help:info
lsusb : looks : - : -v -t -s=TEXT -d=TEXT -V|--version:info
lspci : looks : - : -v -vv -vvv -k -n -nn -s=TEXT -d=TEXT -t -m -D
lsmod : looks
lsb_release : looks : - : -a|--all -d|--description -i|--id -r|--release -c|--codename -s|--short
sw_vers : looks single : - : -productName -productVersion -buildVersion
nvidia-smi : looks : - : -L|--list-gpus -q|--query -i|--id=TEXT -d|--display=TEXT --query-gpu=TEXT --query-compute-apps=TEXT
    --format=TEXT -l|--loop[=TEXT] -h|--help:info
getconf : looks : TEXT READ : -a
locale : looks : TEXT... : -a|--all-locales -m|--charmaps -c|--category-name -k|--keyword-name
clear : looks : - : -x
aws/nginx : runs net : - : --version:info -v:info -V:info

# --- Services, mounts, packages of systems
# systemctl(1), systemd 252. Other machines, containers and folders (-H -M --root --image) are left out.
systemctl-options = -t|--type=TEXT --state=TEXT -p|--property=TEXT -P=TEXT -a|--all --failed -l|--full -r|--recursive
    --reverse --with-dependencies --value --plain --no-pager --no-legend --legend=TEXT -q|--quiet -n|--lines=TEXT
    -o|--output=TEXT --timestamp=TEXT --user --system --show-types --no-ask-password --now --no-block --wait --no-reload
    --runtime --global -f|--force --job-mode=TEXT -s|--signal=TEXT --kill-whom=TEXT
systemctl : looks : - : systemctl-options -h|--help:info --version:info
systemctl (alone) : looks needs=systemd : - : systemctl-options
systemctl status, is-active, is-enabled, is-failed, is-system-running, get-default, list-units, list-unit-files,
    list-timers, list-sockets, list-jobs, list-dependencies, list-paths, list-automounts : looks needs=systemd : TEXT... :
    systemctl-options
systemctl start, stop, restart, reload, try-restart, reload-or-restart, try-reload-or-restart, kill, clean, freeze, thaw,
    isolate, enable, disable, reenable, preset, mask, unmask, link, revert, add-wants, add-requires, set-default,
    set-property, reset-failed, cancel, daemon-reload, daemon-reexec, set-environment, unset-environment,
    import-environment, halt, poweroff, reboot, suspend, hibernate, rescue, emergency, default, kexec, exit : changes
    needs=systemd : TEXT... : systemctl-options
control-options = --no-pager --no-ask-password -p|--property=TEXT -a|--all --value -q|--quiet
timedatectl : looks : - : control-options -h|--help:info --version:info
timedatectl (alone) : looks needs=systemd : - : control-options
timedatectl status, show, list-timezones, timesync-status : looks needs=systemd : TEXT... : control-options
timedatectl set-time, set-timezone, set-ntp : changes needs=systemd : TEXT... : control-options
hostnamectl : looks : - : control-options -h|--help:info --version:info
hostnamectl (alone) : looks needs=systemd : - : control-options
hostnamectl status : looks needs=systemd : TEXT... : control-options
hostnamectl hostname, set-hostname, icon-name, chassis, deployment, location : changes needs=systemd : TEXT... :
    control-options
umount : changes : EITHER... : -l -f -v -R -a
findmnt : looks : TEXT... : -l|--list -t|--types=TEXT -o|--output=TEXT -J|--json -n|--noheadings -T|--target=READ
    -R|--submounts -D|--df
# apt(8), apt-get(8), apt-cache(8), 2.6. -o and -c set what apt runs.
apt-options = -y|--yes|--assume-yes --assume-no -q|--quiet[=TEXT] -s|--simulate|--dry-run|--just-print -d|--download-only
    -f|--fix-broken -m|--fix-missing -V|--verbose-versions -u|--show-upgraded --no-install-recommends --install-recommends
    --no-install-suggests --no-upgrade --only-upgrade --reinstall --purge --auto-remove|--autoremove --allow-downgrades
    --allow-change-held-packages -t|--target-release|--default-release=TEXT --no-show-upgraded -a|--all-versions
    -n|--names-only --full --installed --upgradable|--upgradeable --manual-installed -i|--important --recurse --no-pager
    -o|--option=CODE -c|--config-file=CODE
apt : looks : - : apt-options -v|--version:info -h|--help:info
apt policy, show, depends, rdepends, madison, showpkg, showsrc, stats, pkgnames, list : looks : READ... : apt-options
apt search : looks : TEXT... : apt-options
apt install, remove, purge, autoremove, update, upgrade, full-upgrade, dist-upgrade, reinstall, clean, autoclean, build-dep,
    satisfy, download, source, autopurge, dselect-upgrade, check : changes net : READ... : apt-options
apt-get : looks : - : apt-options -v|--version:info -h|--help:info
apt-get install, remove, purge, autoremove, update, upgrade, full-upgrade, dist-upgrade, reinstall, clean, autoclean,
    build-dep, satisfy, download, source, autopurge, dselect-upgrade, check : changes net : READ... : apt-options
apt-cache : looks : - : apt-options -v|--version:info -h|--help:info
apt-cache policy, show, depends, rdepends, madison, showpkg, showsrc, stats, pkgnames : looks : READ... : apt-options
apt-cache search : looks : TEXT... : apt-options
apt-cache gencaches : changes net : READ... : apt-options
apt-mark : looks : - : apt-options -v|--version:info -h|--help:info
apt-mark showauto, showmanual, showhold : looks : READ... : apt-options
apt-mark auto, manual, hold, unhold : changes net : READ... : apt-options
dpkg-query : looks : TEXT... : -l|--list -s|--status -L|--listfiles -S|--search -p|--print-avail -W|--show
    -f|--showformat=TEXT --no-pager --version:info -?|--help:info
dnf/yum/zypper : changes net : TEXT... : -y|--assumeyes -q|--quiet -v|--verbose -f|--force
apk : looks : - : -q|--quiet -v|--verbose --no-cache
apk info : looks : TEXT... : -e|--installed -v|--verbose -q|--quiet -L|--contents
apk add, del, update, upgrade, fix, search, list, policy : changes net : TEXT... : -q|--quiet -v|--verbose --no-cache
    -U|--update-cache --virtual|-t=TEXT
brew : changes net words : TEXT...

# --- JavaScript
pnpm-options = -h|--help -v|--version -s|--silent -r|--recursive --filter|-F=TEXT -w|--workspace-root --stream --parallel
    --color --no-color --reporter=TEXT --loglevel=TEXT --if-present --no-bail --offline --prefer-offline
    --workspace-concurrency=TEXT -C|--dir=FOLDER --registry=CODE --script-shell=CODE --node-options=CODE --config=CODE
    --store-dir=WRITE_TREE
yarn-options = -h|--help -v|--version -s|--silent --verbose --json --offline --non-interactive --no-progress --cwd=FOLDER
    --use-yarnrc=CODE --script-shell=CODE --registry=CODE --cache-folder=WRITE_TREE --modules-folder=WRITE_TREE
pnpm-changes = pnpm-options -D|--save-dev -P|--save-prod -O|--save-optional -E|--save-exact -g|--global -f|--force --dev
    --prod --frozen-lockfile --no-frozen-lockfile --lockfile-only --no-lockfile --ignore-scripts --no-optional --latest -L
    --shamefully-hoist --strict-peer-dependencies --fix-lockfile --depth=TEXT --json --long --dry-run --tag=TEXT
yarn-changes = yarn-options -D|--dev -P|--peer -O|--optional -E|--exact -T|--tilde -W|--ignore-workspace-root-check --force
    --frozen-lockfile --immutable --pure-lockfile --production --check-files --ignore-scripts --ignore-engines --latest
    --mode=TEXT --depth=TEXT --pattern=TEXT -A|--all -R|--recursive
pnpm : runs net : READ... : pnpm-options
pnpm (alone) : runs net
# Words after the name of a script are its arguments.
pnpm test, t, start, stop, build, dev, lint, format, typecheck, type-check, check, clean, preview, serve, watch, coverage,
    e2e : runs net words arguments=0 : TEXT...
pnpm run, run-script, exec, dlx, create : runs net posix first arguments=1 : TEXT... : -s|--silent --if-present
    -r|--recursive --parallel -q|--quiet
pnpm install, i, add, remove, rm, uninstall, update, up, dedupe, import : runs net also=package.json,pnpm-lock.yaml :
    TEXT... : pnpm-changes
pnpm list, ls, why, outdated, audit, licenses, store, prune, rebuild, fetch, pack, publish, root, bin : runs net : TEXT... :
    pnpm-changes
yarn : runs net : READ... : yarn-options
yarn (alone), install, add, remove, up, upgrade, upgrade-interactive, dedupe, import : runs net also=package.json,yarn.lock
    : TEXT... : yarn-changes
yarn test, t, start, stop, build, dev, lint, format, typecheck, type-check, check, clean, preview, serve, watch, coverage,
    e2e : runs net words arguments=0 : TEXT...
yarn run, exec, dlx, create, node, workspace, workspaces : runs net posix first arguments=1 : TEXT... : -s|--silent
    --if-present -r|--recursive --parallel -q|--quiet
yarn list, why, info, outdated, audit, licenses, config, cache, version, pack, publish, bin : runs net : TEXT... :
    yarn-changes
corepack/nvm/fnm/volta : runs net arguments=1 : TEXT... : -h|--help -v|--version --lts --latest --install-if-missing
    --default
jest : runs net : READ... : -h|--help -v|--version -t|--testNamePattern=TEXT --testPathPattern|--testPathPatterns=TEXT
    --testPathIgnorePatterns=TEXT -i|--runInBand -u|--updateSnapshot --coverage[=TEXT] --collectCoverage
    --collectCoverageFrom=TEXT --coverageReporters=TEXT --coverageDirectory=WRITE_TREE --watch --watchAll[=TEXT] --ci
    --silent --verbose[=TEXT] -b|--bail[=TEXT] -w|--maxWorkers=TEXT --passWithNoTests --json --outputFile=WRITE
    --detectOpenHandles --forceExit --no-cache --clearCache --listTests -o|--onlyChanged --onlyFailures|-f
    --findRelatedTests --selectProjects=TEXT --shard=TEXT --testTimeout=TEXT --color --colors --no-color --expand|-e
    --noStackTrace --logHeapUsage --showConfig --runTestsByPath --changedSince=TEXT -c|--config=CODE --rootDir=CODE
    --env=CODE --reporters=CODE --setupFiles=CODE --globalSetup=CODE --transform=CODE --runner=CODE --resolver=CODE
ava : runs net : READ... : --help --version -m|--match=TEXT -v|--verbose -s|--serial -u|--update-snapshots -t|--tap
    -T|--timeout=TEXT --fail-fast --config=CODE
vite/webpack/rollup/esbuild/next/ng/nx/turbo/lerna/gulp/grunt : runs net arguments=1 : TEXT... : -h|--help -v|--version
    -w|--watch --mode=TEXT --debug --verbose --silent --prod --production --no-color --color --bundle --minify[=TEXT]
    --sourcemap[=TEXT] --format=TEXT --platform=TEXT --target=TEXT --external:gap --all --port=TEXT --host[=TEXT] --open
    --strictPort --clearScreen=TEXT --emptyOutDir --parallel=TEXT --skip-nx-cache --force --no-cache --filter=TEXT
    --concurrency=TEXT --since=TEXT --scope=TEXT --turbo --turbopack --lint --fix --outdir|--outDir=WRITE_TREE
    --outfile=WRITE -c|--config=CODE --plugin=CODE -p|--require:gap
nodemon/serve/http-server : runs net arguments=1 : SCRIPT TEXT... : -h|--help -v|--version -p|--port=TEXT -l|--listen=TEXT
    -s|--single -c=TEXT -e|--ext=TEXT -w|--watch=READ -q|--quiet -o:gap -x|--exec=CODE -r|--require=CODE --config=CODE

# --- Java, Ruby, PHP, Elixir, .NET, Swift, Dart
# Build files and plugins are code, and run whatever is asked for. So does `mvn --version`, where there is a `.mvn` (jvm.config:
# `-javaagent:`). gradlew and mvnw are files of the project. The words of sbt and lein are commands in a language of their own.
# `dotnet --version` runs the SDK that global.json names, since .NET 10 from any folder (`sdk.paths`).
mvn-options = -V|--show-version -q|--quiet -B|--batch-mode -e|--errors -X|--debug -o|--offline -U|--update-snapshots
    -nsu|--no-snapshot-updates -ntp|--no-transfer-progress -N|--non-recursive -am|--also-make -amd|--also-make-dependents
    -pl|--projects=TEXT -rf|--resume-from=TEXT -P|--activate-profiles=TEXT -T|--threads=TEXT -fae|--fail-at-end
    -ff|--fail-fast -fn|--fail-never -C|--strict-checksums --color=TEXT -DskipTests[=TEXT] -DskipITs[=TEXT]
    -Dmaven.test.skip[=TEXT] -Dtest[=TEXT] -Dit.test[=TEXT] -DfailIfNoTests[=TEXT] -Dsurefire.failIfNoSpecifiedTests[=TEXT]
    -Dstyle.color[=TEXT] -Dcheckstyle.skip[=TEXT] -Dspotless.check.skip[=TEXT] -l|--log-file=WRITE -f|--file=SCRIPT
    -s|--settings=CODE -gs|--global-settings=CODE -t|--toolchains=CODE -gt|--global-toolchains=CODE -D|--define=CODE
    -b|--builder=CODE
mvn : runs net single names obeys=.mvn : TEXT... : -h|--help -v|--version:info mvn-options
mvnw/mvnd : runs net single names : TEXT... : -h|--help -v|--version mvn-options
gradle/gradlew : runs net names : TEXT... : -h|--help -v|--version -q|--quiet -i|--info -d|--debug -s|--stacktrace
    -S|--full-stacktrace -w|--warn --offline --no-daemon --daemon --parallel --no-parallel --continue --no-continue
    -x|--exclude-task=TEXT --tests=TEXT --rerun-tasks --rerun --build-cache --no-build-cache --configuration-cache
    --no-configuration-cache --scan --no-scan --console=TEXT --warning-mode=TEXT --refresh-dependencies --max-workers=TEXT
    -m|--dry-run -t|--continuous --profile --stop --status --configuration=TEXT --all --dependency=TEXT --type=TEXT
    --project-cache-dir=WRITE_TREE -p|--project-dir=FOLDER -b|--build-file=SCRIPT -c|--settings-file=SCRIPT
    -I|--init-script=CODE --include-build=CODE -g|--gradle-user-home=CODE -D|--system-prop=CODE -P|--project-prop=CODE
sbt/ant/lein : runs net names : TEXT... : -h|--help -v|--verbose --version -d|--debug -q|--quiet --batch|-batch --client
    --color=TEXT --supershell=TEXT -no-colors
bundle-options = -h|--help -v|--version --quiet --verbose --jobs|-j=TEXT --retry=TEXT --local --full-index --without=TEXT
    --with=TEXT --deployment --frozen --no-cache --all --group|-g=TEXT --conservative --strict --parseable --paths
    --path=WRITE_TREE --gemfile=CODE --source=CODE
bundle/bundler : runs net : - : bundle-options
bundle/bundler exec : runs net posix : COMMAND... : --keep-file-descriptors
bundle/bundler (alone), install, update, add, remove, lock : runs net also=Gemfile.lock : TEXT... : bundle-options
bundle/bundler check, list, show, info, outdated, config, clean, init, open, binstubs : runs net : TEXT... : bundle-options
gem : looks : - : -v|--version:info -h|--help:info
gem install, uninstall, update, build, push, list, search, info, outdated, env, cleanup, fetch : runs net : TEXT EITHER... :
    -h|--help -q|--quiet -V|--verbose -v|--version=TEXT -N|--no-document --user-install -f|--force -a|--all -l|--local
    -r|--remote -x|--executables -I --conservative -i|--install-dir=WRITE_TREE -s|--source=CODE --config-file=CODE
rake : runs net names : TEXT... : -h|--help -V|--version -T|--tasks[=TEXT] -A|--all -D|--describe[=TEXT] -P|--prereqs
    -n|--dry-run -q|--quiet -s|--silent -t|--trace[=TEXT] -v|--verbose[=TEXT] -j|--jobs[=TEXT] -m|--multitask
    -f|--rakefile=SCRIPT -e|--execute=CODE -E|--execute-continue=CODE -p|--execute-print=CODE -r|--require=CODE
    -I|--libdir=CODE -R|--rakelibdir=CODE
composer-options = -h|--help -q|--quiet -v|--verbose -vv -vvv -V|--version --ansi --no-ansi -n|--no-interaction --no-plugins
    --no-scripts --no-cache --dev --no-dev --dry-run --prefer-dist --prefer-source -o|--optimize-autoloader
    -W|--with-all-dependencies -w|--with-dependencies --no-update --no-progress -l|--latest --outdated -D|--direct -t|--tree
    -i|--installed --ignore-platform-reqs -d|--working-dir=FOLDER --timeout=TEXT
composer : runs net : - : composer-options
composer (alone) : runs net
composer run, run-script, exec, test, create-project : runs net arguments=1 : TEXT... : composer-options
composer install, update, require, remove : runs net also=composer.json,composer.lock : TEXT... : composer-options
composer show, info, outdated, validate, dump-autoload, dumpautoload, audit, why, why-not, check-platform-reqs, diagnose :
    runs net : TEXT... : composer-options
phpunit : runs net : READ... : -h|--help --version --filter=TEXT --group=TEXT --exclude-group=TEXT --testsuite=TEXT
    --stop-on-failure --stop-on-error --testdox --colors[=TEXT] --debug -v|--verbose --no-coverage --coverage-text
    --list-tests --order-by=TEXT --coverage-html=WRITE_TREE --coverage-clover=WRITE --log-junit=WRITE
    -c|--configuration=CODE --bootstrap=CODE --extension=CODE --include-path=CODE -d=CODE --printer=CODE
mix : runs net arguments=1 : TEXT... : -h|--help -v|--version --trace --stale --failed --cover --only=TEXT --exclude=TEXT
    --include=TEXT --seed=TEXT --max-failures=TEXT --warnings-as-errors --force --check-formatted --dry-run --strict --all
    --slowest=TEXT -r|--require=CODE -e|--eval=CODE
dotnet : runs net : - : --version --info -h|--help --list-sdks:info --list-runtimes:info
dotnet (alone) : runs net
dotnet build, test, run, restore, publish, pack, clean, format, new, add, remove, list, tool, sln, watch, nuget, workload,
    ef : runs net : EITHER... : -h|--help -c|--configuration=TEXT -f|--framework=TEXT -r|--runtime=TEXT -v|--verbosity=TEXT
    --no-restore --no-build --no-incremental --nologo --self-contained --filter=TEXT -t|--list-tests --blame
    --verify-no-changes --include=TEXT --exclude=TEXT --version=TEXT --prerelease --project=SCRIPT -n|--name=TEXT --outdated
    --vulnerable -g|--global --collect=TEXT -o|--output=WRITE_TREE --results-directory=WRITE_TREE -p|--property=CODE
    -s|--source|--settings=CODE --logger=CODE --configfile=CODE -a|--test-adapter-path=CODE
msbuild : runs net single : SCRIPT : -version -help -nologo -m -restore
swift : runs net
swift build, test, run, package resolve, package update, package describe, package clean : runs net arguments=0 : TEXT... :
    -h|--help -v|--verbose -q|--quiet -c|--configuration=TEXT --filter=TEXT --skip=TEXT --parallel --product=TEXT
    --target=TEXT --package-path=FOLDER --scratch-path|--build-path=WRITE_TREE
xcodebuild : runs net single names : TEXT... : -version -list -showsdks -quiet -project=SCRIPT -workspace=SCRIPT
    -scheme=TEXT -target=TEXT -configuration=TEXT -sdk=TEXT -destination=TEXT -derivedDataPath=WRITE_TREE
    -resultBundlePath=WRITE_TREE -json
dart/flutter : runs net : - : --version --disable-analytics -h|--help
dart/flutter pub get, pub add, pub upgrade, pub outdated, pub run, pub global, pub deps, test, analyze, format, fix, run,
    compile, create, build, clean, doctor, devices, gen-l10n, config : runs net : EITHER... : -h|--help -v|--verbose
    --offline --dry-run --fatal-infos --fatal-warnings --no-fatal-infos --release --debug --profile --no-pub --name|-n=TEXT
    --plain-name|-N=TEXT --coverage --concurrency|-j=TEXT --reporter|-r=TEXT -d|--device-id=TEXT --set-exit-if-changed
    -o|--output=TEXT -l|--line-length=TEXT -t|--tags=TEXT -x|--exclude-tags=TEXT --dart-define=CODE --packages=CODE
    --local-engine=CODE

# --- Tools of Python
# isort runs git if the configuration sets skip_gitignore, and git runs programs that the repository's configuration names.
isort : runs : EITHER... : -h|--help -V|--version --vn|--version-number -v|--verbose -q|--quiet -c|--check|--check-only
    --diff --df --color --profile=TEXT -l|--line-length|--line-width=TEXT --skip=TEXT --skip-glob=TEXT --filter-files
    --gitignore --float-to-top --src=READ --py|--python-version=TEXT --show-files --settings-path|--settings-file|--sp=CODE
    -a|--add-import=TEXT -p|--project=TEXT -j|--jobs=TEXT --stdout -d --atomic --overwrite-in-place
flake8 : runs : READ... : -h|--help --version -v|--verbose -q|--quiet --count --exclude=TEXT --extend-exclude=TEXT
    --filename=TEXT --format=TEXT --select=TEXT --extend-select=TEXT --ignore=TEXT --extend-ignore=TEXT
    --per-file-ignores=TEXT --max-line-length=TEXT --max-complexity=TEXT --max-doc-length=TEXT --show-source --statistics
    --exit-zero -j|--jobs=TEXT --benchmark --isolated --output-file=WRITE --tee --config=CODE --append-config=CODE
    --enable-extensions=CODE
# The configuration of these checkers names plugins, formatters, or other files and folders to read or write.
bandit/vulture : runs : READ... : -h|--help --version -v|--verbose -q|--quiet -r|--recursive -x|--exclude=TEXT
    -f|--format=TEXT -l|--level -i|--confidence -s|--skip=TEXT -t|--tests=TEXT --min-confidence=TEXT --sort-by-size
    -o|--output=WRITE -c|--configfile=CODE --config=CODE --ini=CODE
pyright/basedpyright : runs net : READ... : -h|--help --version -w|--watch --stats --verbose --outputjson --warnings
    --skipunannotated --dependencies --level=TEXT --threads=TEXT --pythonversion=TEXT --pythonplatform=TEXT
    -p|--project=CODE --pythonpath=CODE -v|--venvpath|--venv-path=CODE -t|--typeshedpath|--typeshed-path=READ
tox : runs net arguments=1 : TEXT... : -h|--help --version -v|--verbose -q|--quiet -l|--list -a|--listenvs-all -r|--recreate
    -p|--parallel[=TEXT] -e=TEXT -m=TEXT -f=TEXT --notest --skip-pkg-install --skip-missing-interpreters[=TEXT]
    --sitepackages --workdir=WRITE_TREE -c|--conf=CODE -x|--override=CODE
nox : runs net arguments=0 : TEXT... : -h|--help --version -v|--verbose -l|--list -s|-e|--session|--sessions=TEXT
    -k|--keywords=TEXT -t|--tags=TEXT -p|--python|--pythons=TEXT -r|--reuse-existing-virtualenvs -R -x|--stop-on-first-error
    --no-install -f|--noxfile=SCRIPT
# The configuration of coverage names plugins, and its data files name the files to read.
coverage-options = -h|--help -q|--quiet --debug=TEXT -i|--ignore-errors --include=TEXT --omit=TEXT --rcfile=CODE
    --data-file=EITHER
coverage : runs : READ... : --version -h|--help
coverage (alone) : runs net
coverage run : runs net posix arguments=1 : (SCRIPT) TEXT... : coverage-options -a|--append --branch -p|--parallel-mode
    --source=TEXT --timid -m|--module:instead
coverage report, html, xml, json, lcov, combine, annotate : runs : READ... : coverage-options -m|--show-missing
    --skip-covered --no-skip-covered --skip-empty --precision=TEXT --sort=TEXT --format=TEXT --fail-under=TEXT
    --contexts=TEXT --show-contexts --title=TEXT --pretty-print -d|--directory=WRITE_TREE -o=WRITE
coverage erase : runs : - : coverage-options
pre-commit : runs net : READ... : -h|--help -V|--version
pre-commit run, install, uninstall, autoupdate, install-hooks, clean, gc, validate-config, validate-manifest, sample-config
    : runs : TEXT... : -h|--help -v|--verbose -a|--all-files --show-diff-on-failure --color=TEXT --hook-stage=TEXT
    -t|--hook-type=TEXT -f|--overwrite --install-hooks --freeze --repo=TEXT -j|--jobs=TEXT --from-ref|--source=TEXT
    --to-ref|--origin=TEXT -c|--config=CODE
mkdocs : runs net : READ...
mkdocs build, serve, gh-deploy, new : runs : WRITE_TREE... : -h|--help -q|--quiet -v|--verbose -s|--strict -c|--clean
    --dirty -t|--theme=TEXT -a|--dev-addr=TEXT -d|--site-dir=WRITE_TREE -f|--config-file=CODE
alembic/django-admin : runs net arguments=1 : TEXT... : -h|--help --version -v|--verbosity=TEXT --traceback --no-color
    --settings=CODE --pythonpath=CODE -c|--config=CODE
# These run code from a file, a notebook, or the words of the command.
ipython/ipython3/jupyter : runs net arguments=0 : TEXT... : -h|--help --version --no-banner --to=TEXT --execute
    --inplace:inplace --output=WRITE -c:gap -m:gap -i:gap

# --- Packages of Python
# Installing runs code (build backends); so may looking, where plugins are loaded first.
uvx : runs net posix arguments=1 : TEXT... : -V|--version -h|--help:info -v|--verbose -q|--quiet -n|--no-cache --no-progress
    --offline --no-config --color=TEXT --no-python-downloads --managed-python --no-managed-python --project=READ
    --directory=FOLDER --cache-dir=WRITE_TREE --config-file=CODE --allow-insecure-host=CODE --native-tls --from=TEXT
    --with=TEXT --isolated -U|--upgrade -p|--python=CODE --index=CODE --default-index=CODE
poetry-options = -h|--help -V|--version -v|--verbose -q|--quiet -n|--no-interaction --ansi --no-ansi --no-plugins --no-cache
    --dry-run -G|--group=TEXT --with=TEXT --without=TEXT --only=TEXT --no-root --no-dev --dev -d -E|--extras=TEXT
    --all-extras --sync -t|--tree -l|--latest -o|--outdated --lock --no-update --all -f|--format=TEXT -C|--directory=FOLDER
    --python=CODE --source=CODE -P|--project=READ
poetry : runs net : - : poetry-options
poetry (alone) : runs net
poetry run : runs net posix : COMMAND...
poetry add, remove, install, update, lock, sync : runs net also=pyproject.toml,poetry.lock : TEXT... : poetry-options
poetry show, check, version, build, publish, env, config, export, search, init, new, about, list : runs net : TEXT... :
    poetry-options
pipenv : runs net : - : poetry-options
pipenv (alone) : runs net
pipenv run : runs net posix : COMMAND...
pipenv install, uninstall, update, lock, sync, graph, check, clean, requirements, verify : runs net : TEXT... : -d|--dev
    --deploy -v|--verbose
twine/hatch/flit/pdm : runs net : TEXT EITHER... : -h|--help --version -v|--verbose -q|--quiet -c|--clean -t|--target=TEXT
    --format=TEXT --skip-existing --strict
conda/mamba/micromamba : looks : - : -h|--help -V|--version:info
conda/mamba/micromamba list, info, env list : looks : TEXT... : --json -n|--name=TEXT -e|--envs -s|--system --export
    -q|--quiet -f|--full-name --no-pip
conda/mamba/micromamba run : runs net posix : COMMAND... : -n|--name=TEXT --no-capture-output --live-stream
conda/mamba/micromamba search, install, create, remove, update, upgrade, clean, config, env create, env update, env remove,
    env export : changes net : TEXT... : -h|--help -y|--yes -q|--quiet -v|--verbose --json -n|--name=TEXT -f|--file=READ
    -e|--envs --all --dry-run --export --no-deps --force-reinstall -p|--prefix=WRITE_TREE -c|--channel=CODE
    --override-channels
pipx : runs net : - : -h|--help --version:info
pipx run : runs net posix arguments=1 : TEXT... : --spec=TEXT --no-cache --pypackages:gap
pipx install, uninstall, upgrade, upgrade-all, reinstall, list, inject, ensurepath : runs net : TEXT... : -h|--help
    -f|--force -v|--verbose --short --json --include-deps
virtualenv : runs net : WRITE_TREE : -h|--help --version -v|--verbose -q|--quiet --clear --system-site-packages
    --prompt=TEXT --no-download --download --copies --no-pip --no-setuptools -p|--python=CODE --extra-search-dir=CODE
    --app-data=CODE

# --- Builders. Reading their rules may run code.
ctest : runs net names : TEXT... : --version:info --help|-h:info -V|--verbose -VV|--extra-verbose -Q|--quiet --progress
    --debug --output-on-failure --stop-on-failure -N|--show-only[=TEXT] -R|--tests-regex=TEXT -E|--exclude-regex=TEXT
    -L|--label-regex=TEXT -LE|--label-exclude=TEXT -FA=TEXT -FS=TEXT -FC=TEXT -j|--parallel[=TEXT] -C|--build-config=TEXT
    --timeout=TEXT --rerun-failed --repeat=TEXT --preset=TEXT --no-label-summary --no-tests=TEXT --test-dir=READ
    --schedule-random -O|--output-log=WRITE --output-junit=WRITE -D=CODE -S=CODE -SP=CODE -T=CODE -M=CODE
ninja : runs net names : TEXT... : --version:info -h|--help:info -v|--verbose --quiet -n -k=TEXT -j=TEXT -l=TEXT -d=TEXT
    -w=TEXT -C=FOLDER -f=SCRIPT -t=CODE
just : runs net names arguments=1 : TEXT... : -V|--version:info -h|--help:info -l|--list --summary -n|--dry-run -v|--verbose
    -q|--quiet -s|--show=TEXT --evaluate --variables --dump -y|--yes --color=TEXT --unsorted -u --no-deps --timestamp
    -d|--working-directory=READ -f|--justfile=SCRIPT --fmt:changes --unstable --shell=CODE --shell-arg=CODE
    --command|-c=CODE --dotenv-path|-E=CODE --dotenv-filename=CODE --chooser=CODE
task : runs net names arguments=1 : TEXT... : --version:info -h|--help:info -l|--list -a|--list-all -s|--silent -v|--verbose
    -n|--dry -f|--force -p|--parallel -C|--concurrency=TEXT -w|--watch --summary --status -x|--exit-code -o|--output=TEXT
    -j|--json --sort=TEXT -d|--dir=READ -t|--taskfile=SCRIPT
# bazel runs tools/bazel of the workspace, and bazelisk the program that .bazeliskrc names, even for `bazel --version`.
bazel/bazelisk : runs net : READ... : --version -h|--help
bazel/bazelisk (alone) : runs net
bazel/bazelisk build, test, run, query, cquery, aquery, coverage, info, clean, version, fetch, mod : runs net arguments=1 :
    TEXT... : -c|--compilation_mode=TEXT --config=TEXT -k|--keep_going --nokeep_going -j|--jobs=TEXT --test_output=TEXT
    --test_filter=TEXT --test_tag_filters=TEXT --cache_test_results=TEXT --nocache_test_results -t --verbose_failures
    --runs_per_test=TEXT --flaky_test_attempts=TEXT -s|--subcommands --output=TEXT --show_progress --noshow_progress
    --color=TEXT --curses=TEXT --keep_state_after_build --expunge --build_tests_only --nobuild
# buf generate and lint run the plugins that buf.yaml and buf.gen.yaml name.
buf : runs net : READ... : -h|--help:info --version:info
buf lint, build, generate, format, breaking, dep update, mod update : runs net : READ... : -h|--help:info --path=READ
    --exclude-path=READ --error-format=TEXT --against=READ -d|--diff --exit-code --debug -w|--write:inplace
    -o|--output=WRITE_TREE --config=CODE --template=CODE

# --- Network
ping : looks net : HOST... : -4 -6 -c=TEXT -i=TEXT -W=TEXT -w=TEXT -s=TEXT -I=TEXT -t=TEXT -n -q -D -O -v -V:info
host : looks net : HOST... : -a -c=TEXT -C -d -l -r -s -t=TEXT -T -v -4 -6 -W=TEXT -R=TEXT
nslookup : looks net single : HOST... : -type=TEXT -query=TEXT -timeout=TEXT -port=TEXT -debug
traceroute : looks net : HOST... : -4 -6 -n -I -T -U -m=TEXT -w=TEXT -q=TEXT -p=TEXT
whois : looks net : HOST... : -h=TEXT -p=TEXT -H
nc : changes net : TEXT... : -4 -6 -d -D -k -l -n -N -r -t -u -v -z -i=TEXT -p=TEXT -q=TEXT -s=TEXT -w=TEXT -e=CODE -c=CODE
    -U=CODE

# --- Charts and virtual machines
release-options = -n|--namespace=TEXT --kube-context=TEXT -o|--output=TEXT
helm : looks go : - : release-options --help:info
helm list, ls, status, history, get values, get manifest, search repo, repo list : looks net go : TEXT... : release-options
    -a|--all -A|--all-namespaces --short -q|--short-names
helm version : looks go : - : --short --template=TEXT
helm-options = release-options -f|--values=READ --set=TEXT --set-string=TEXT --version=TEXT --create-namespace --wait
    --timeout=TEXT --atomic -i|--install --dry-run[=TEXT] --reuse-values --debug --repo=TEXT
helm template, lint, show values, show chart : runs net go : TREE... : helm-options
helm install, upgrade : changes net go : TREE... : helm-options
helm uninstall, rollback, repo add, repo update : changes net go : TEXT... : release-options --wait --timeout=TEXT
helm dependency update, dependency build, dep update : changes net go : EITHER_TREE
vagrant : looks : - : --help:info
vagrant up, halt, destroy, status, reload, provision, suspend, resume, global-status : runs net go : TEXT...
minikube : looks : - : --help:info
minikube start, stop, delete, status, ip, version : runs net go : TEXT...
kind : looks : - : --help:info
kind create cluster, delete cluster, get clusters, load docker-image, version : runs net go : TEXT...

# --- Go
# These load packages, which may fetch modules; the configuration of golangci-lint names plugins.
golangci-lint/staticcheck/goimports/gofumpt : runs net single : READ... : -h|--h[=TEXT] -help|--help[=TEXT]
    -version|--version[=TEXT] -v|--v[=TEXT] -l|--l -d|--d -e|--e -fix|--fix[=TEXT] -fast|--fast[=TEXT] -tests|--tests[=TEXT]
    -checks|--checks=TEXT -f|--f=TEXT -tags|--tags=TEXT -timeout|--timeout=TEXT -new|--new[=TEXT]
    -new-from-rev|--new-from-rev=TEXT -enable|--enable=TEXT -E|--E=TEXT -disable|--disable=TEXT -D|--D=TEXT
    -presets|--presets=TEXT -out-format|--out-format=TEXT -local|--local=TEXT -srcdir|--srcdir=READ -w|--w:inplace
    -c|--c=CODE -config|--config=CODE
"""

PROGRAMS: Mapping[str, Program] = Rows(_TABLE)
