"""What destroys, as commands are read by the real tool: behind wrappers, in text that is not understood, and what does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from rows import all_rows
from sizes import spread
from work import assert_linear

from harness.actions import Action
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.policy.destruction import destroys
from harness.tools.bash import BashTool
from harness.tools.write_file import WriteFileTool


def reasons(root: Path, command: str) -> tuple[str, ...]:
    call = ToolCall(id="1", name="bash", arguments=json.dumps({"command": command}))
    return destroys(BashTool(Workspace(str(root))).prepare(call, {"command": command}))


@all_rows(
    "command",
    [
        "rm -r x", "rm -rf x", "rm -Rf x", "rm --recursive x", "rm --rec x", "rm a b", "rm *.log", "/bin/rm -r x", "\\rm -r x",
        "sudo rm -rf x", "env A=1 rm -r x", "nice rm -r x", "timeout 5 rm -r x", "sh -c 'rm -rf x'", "bash <<< 'rm -rf x'",
        "ls && rm -r x", "ls | xargs rm", "find . -name x | xargs -0 rm -f", "find . -delete", "find . -exec rm {} +",
        "find . -execdir rm -f {} ;", "for f in *; do rm $f; done", "eval \"rm $X\"", "X=$(rm -r y) ls", "shred x",
        "dd if=/dev/zero of=x", "truncate -s 0 x", "mkfs.ext4 x", "dropdb x", "crontab -r", "rsync -a --delete a/ b/",
        "git reset --hard", "git reset --har", "git -C x reset --hard HEAD~1", "git -c a.b=c reset --hard", "git clean -fd",
        "git checkout -- x", "git checkout .", "git checkout HEAD x", "git checkout a.py", "git checkout -f main",
        "git restore x", "git restore -SW x", "git switch --discard-changes x", "git push --force", "git push -f origin x",
        "git push --force-with-lease", "git push origin +main", "git push origin :x", "git push origin --delete x",
        "git push --mirror", "git branch -D x", "git branch -d -f x", "git branch -f x y", "git stash drop", "git stash clear",
        "git reflog expire --all", "git gc --prune=now", "git filter-branch", "git update-ref -d x", "git tag -d x",
        "git worktree remove x", "env git push -f", "docker rm x", "docker system prune -f", "docker compose down",
        "kubectl delete pod x", "terraform destroy", "terraform apply -destroy", "aws s3 rm s3://x --recursive",
        "gh repo delete x", "sed -i d x", "sed -i.bak '1,$d' x", "tee x </dev/null", "tee x < /dev/null",
        "psql -c 'DROP TABLE x'", "python -c 'import shutil; shutil.rmtree(\"x\")'", "ssh host 'rm -rf x'",
        "redis-cli FLUSHALL",
        "git $X --hard", "f() { rm -r x; }; f",
        # Fed
        "redis-cli <<< FLUSHALL", "echo FLUSHALL | redis-cli", "echo 'drop table x' | mysql", "echo 'rm -rf x' | ssh host",
        "psql <<EOF\ndrop table x;\nEOF", "mongosh <<< 'db.dropDatabase()'", "crontab - < /dev/null",
        # Options, as they are read by getopt(3) and by git
        "rm --r src", "git clean -fdx -enode_modules", "git clean -fden", "git clean -f -e -n", "git clean -f --exclude -n",
        "git clean -fd --exclude=n", "git restore -sSTABLE a.c", "git restore -s -S a.c", "git restore --st --w .",
        "git push o --d x", "git stash -q drop", "git worktree -v remove x", "git --attr-source HEAD push --force o m",
        "git clean --excl -n",
        # git
        "git checkout Makefile", "git checkout src/", "git checkout ./", "git checkout --pathspec-from-file=x",
        "git checkout-index -f -a", "git read-tree -u --reset HEAD", "git branch -C a b", "git mv -f a b",
        "git submodule deinit -f .", "git submodule update --force", "git lfs prune", "git -c alias.x='!rm -rf src' x",
        "git config alias.x '!rm -rf src' && git x",
        # Others
        "fd -e c -x rm", "find . -exec unlink {} +", "crontab /dev/null", "crontab table", "mysqladmin -f drop db",
        "mongosh --eval 'db.dropDatabase()'", "psql -c 'DROP   OWNED BY x'", "aws ec2 terminate-instances --instance-ids i",
        "aws rds delete-db-instance", "aws s3 sync . s3://x --delete", "gh api -XDELETE x", "gh api --method=DELETE x",
        "curl -X DELETE x", "curl -sXDELETE x", "rclone purge x:y", "rclone sync a b:", "s3cmd del s3://x",
        "restic forget --prune", "borg delete x", "helm del x", "terraform state rm x", "hg purge", "hg strip x",
        "hg update -C",
        "svn revert -R .", "zip -m a.zip b", "deluser x", "virsh undefine x", "rails db:drop", "bundle exec rake db:reset",
        "python manage.py flush --noinput", "npx prisma migrate reset",
        "python3 -c 'from pathlib import Path; Path(\"x\").unlink()'", "perl -e 'unlink glob \"*\"'",
        "ruby -e 'File.delete(\"x\")'", "node -e 'require(\"fs\").rmSync(\"x\")'",
        "cp /dev/null a.c", "mv src /dev/null", ": > a.db", "> a.db", "cat /dev/null > a.db", "parted /dev/x rm 1",
    ],
)  # fmt: skip
def test_destructive_command_has_a_reason(tmp_path: Path, command: str) -> None:
    """Each is told in at least one sentence."""
    assert reasons(tmp_path, command) != ()


@all_rows(
    "command",
    [
        "ls", "rm x", "rm -f x", "rm -- -r", "echo rm -rf x", "grep -r 'rm -rf' .", "grep 'DROP TABLE' x",
        "git status", "git commit -m 'rm -rf is gone'", "git push", "git push origin main", "git push -u origin main",
        "git checkout main",
        "git checkout -b x", "git checkout -b x origin/main", "git checkout feature/x", "git switch main",
        "git restore --staged x",
        "git clean -n", "git branch x", "git branch -d x", "git reset x", "git reset --soft HEAD~1", "git stash",
        "git stash pop",
        "git gc", "git tag x", "git tag", "git reflog", "docker run --rm x", "docker ps", "kubectl get pods", "terraform plan",
        "make clean", "npm test", "find . -name x", "touch a b", "cp -r a b", "mkdir rm", "python x.py", "tar -xf x.tar",
        "sudo ls", "cat $(ls)", "rsync -a a/ b/", "rmdir x", "rmdir -p a/b", "fdisk -l", "parted /dev/x print", "crontab -l",
        "git clean -nd", "git clean -n -e x", "git restore -S -s main x", "git submodule update --init", "git mv a b",
        "git config alias.st status", "git commit -m 'x=1! rm -rf is gone'", "git checkout v1.2", "git checkout origin/main",
        "cat > x.sh <<EOF\nrm -rf build\nEOF", "patch -p1 <<EOF\n+rm -rf x\nEOF", "git apply <<EOF\n+drop table x\nEOF",
        "echo 'rm -rf x' | grep rm", "echo a | tee x", "ls >> a", "echo a > b", "make 2>&1", "cat a > b", "curl -X POST x",
        "aws ec2 describe-instances", "rails db:migrate", "hg update",
        # Values, as the tables of the models know them
        "git push -ofd origin main", "git push -o +x origin main", "git checkout --track origin/v1.x",
    ],
)  # fmt: skip
def test_harmless_command_has_no_destruction_reason(tmp_path: Path, command: str) -> None:
    """A word that is asked for too often is typed unread."""
    assert reasons(tmp_path, command) == ()


def test_file_tool_is_not_destructive(tmp_path: Path) -> None:
    """What it overwrites is kept for undo."""
    arguments = {"path": "a.py", "content": "rm -rf /\n"}
    call = ToolCall(id="1", name="write_file", arguments=json.dumps(arguments))
    assert destroys(WriteFileTool(Workspace(str(tmp_path))).prepare(call, dict(arguments))) == ()


@all_rows(
    "command",
    [
        lambda count: "foo " + "git -c a rm drop find -exec " * (count // 10),
        lambda count: "sudo " + "rm " * count,
        lambda count: "sudo " + "curl " * count + "DELETE",
        lambda count: "foo " + "git push x " * (count // 3) + "--force",
        lambda count: "foo; " * (count // 5) + "x | aws <<E\n" + "aws x " * (count // 3) + "rm\nE",
    ],
    ids=["several", "rm", "curl", "push", "fed"],
)
def test_a_hostile_text_is_looked_at_by_work_that_is_linear(tmp_path: Path, command: Callable[[int], str]) -> None:
    """What the regular expressions take is timed by bench/growth.py."""
    tool = BashTool(Workspace(str(tmp_path)))

    def action(count: int) -> Action:
        return tool.prepare(ToolCall(id="1", name="bash", arguments="{}"), {"command": command(count)})

    for count in spread("SIZES", (400, 6_000), 1):  # 10,000 characters are understood
        assert_linear(action, destroys, count)
    assert destroys(action(25_000)) != ()
