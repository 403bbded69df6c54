"""The policies that come with the package: what they stop, and what they leave alone."""

import pytest

from cxi.errors import Refused
from cxi.policy.base import Permitted

WRITES = '@id("w") permit (principal, action, resource);'


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "a/.env", ".env.local", "config/prod.env", ".ENV", "a/.Env.Production", ".envrc", ".e\u200bnv"),
        *("key.pem", "a/b/server.PEM", "id_rsa", "id_ed25519", "id_rsa_work", "x.p12", "x.pfx", "x.jks", "ssh_host_rsa_key"),
        *(".ssh/config", "/home/u/.ssh/id_rsa", "/home/u/.SSH/known_hosts", "/home/u/.gnupg/secring.gpg"),
        *("/home/u/.aws/credentials", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "/home/u/.kube/config", "kubeconfig"),
        *("/home/u/.docker/config.json", ".pgpass", "/etc/shadow", "/proc/self/environ", "/home/u/.config/gh/hosts.yml"),
        *("/home/u/.config/gcloud/credentials.db", "/home/u/.cargo/credentials.toml", "a/.htpasswd"),
    ],
)
def test_secrets_are_not_read(monitor_of, ask, path):
    answer = monitor_of(WRITES, base=True).decide(ask("fs.read", path))
    assert isinstance(answer, Refused)
    assert set(answer.codes) == {"POLICY_FORBIDS"}
    assert all(reason.needs for reason in answer.reasons)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "README.md",
            "src/env.py",
            "environment.yml",
            ".env.example",
            "docs/keys.md",
            "src/pem.py",
            "id_rsa.pub",
            "src/ssh/client.py",
        ),
        *(
            "tokenizer.json",
            "a/.gitignore",
            ".github/workflows/ci.yml",
            ".git/config",
            "docker/config.json.md",
            "Makefile",
            "src/key.py",
        ),
    ],
)
def test_ordinary_files_are_read(monitor_of, ask, path):
    assert monitor_of(base=True).decide(ask("fs.read", path)) == Permitted(("cxi/reads",))


@pytest.mark.parametrize(
    "kind",
    ["fs.create", "fs.write", "fs.delete", "fs.chmod", "fs.symlink", "fs.link", "fs.mkdir", "fs.rmdir", "fs.mkfifo", "fs.touch"],
)
@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git", "a/b/.git/config", ".GIT/config", ".g\u200dit/config", "/srv/x/.git/HEAD"]
)
def test_nothing_in_a_git_folder_is_written(monitor_of, ask, kind, path):
    answer = monitor_of(WRITES, base=True).decide(ask(kind, path))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_FORBIDS",)


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "src/git/a", "a.git", ".gitmodules"])
def test_what_only_looks_like_a_git_folder_is_left_alone(monitor_of, ask, path):
    assert monitor_of(WRITES, base=True).decide(ask("fs.write", path)) == Permitted(("w",))


def test_git_itself_may_be_permitted(monitor_of, ask):
    assert monitor_of(WRITES, base=True).decide(ask("git.index", "src/a")) == Permitted(("w",))


def test_nothing_is_sent_off_the_host_by_default(monitor_of, ask):
    for kind, target in (("net.connect", "a:1"), ("http.request", "GET http://a:80/"), ("fs.write", "a"), ("proc.exec", "ls")):
        answer = monitor_of(base=True).decide(ask(kind, target))
        assert isinstance(answer, Refused)
        assert answer.codes == ("EFFECT_FORBIDDEN",)
