"""Commands that print secrets whatever files they read, and their neighbours that do not."""

from __future__ import annotations

import pytest

from readcache.core.judging.protect import prints_secrets

ENVIRONMENT = (
    *("env", "printenv", "printenv SECRET_KEY", "set", "export", "export -p", "declare -x", "declare -p", "history"),
    *("cd x && env | sort", "sudo env", "env > f; cat f", "env A=1", "env -0", "(env)", "x=$(env); echo $x"),
    *("set -a; . ./.env; set", "set | grep X", "if true; then env; fi", "/usr/bin/env", "env 2>/dev/null | head"),
    *("bash -c 'env'", 'bash -lc "cd x; printenv FOO"', "ssh host env", "docker exec -it web env"),
    *("docker run --rm image env", "kubectl exec pod -- env", "echo $API_KEY", 'echo "key=${OPENAI_API_KEY}"'),
    *("cat <<< $DB_PASSWORD", "python3 -c 'import os; print(os.environ)'", "node -e 'console.log(process.env)'"),
)
PROGRAMS = (
    *("docker inspect web", "docker container inspect web", "docker compose -f x.yml config", "podman inspect web"),
    *("kubectl get secret x -o yaml", "kubectl -n a get secrets", "kubectl config view --raw", "gh auth token"),
    *("gh auth status --show-token", "aws sts get-session-token", "AWS_PROFILE=x aws sts get-caller-identity"),
    *("aws --region x secretsmanager get-secret-value --secret-id y", "gcloud auth print-access-token"),
    *("az account get-access-token", "vault kv get secret/x", "vault read secret/x", "op read op://a/b/c"),
    *("sops -d x.yaml", "ansible-vault view x.yml", "pass show a/b", "security find-generic-password -w -s x"),
    *("terraform output -json", "heroku config -a x", "git credential fill"),
)
OTHERS = (
    *("env X=1 make", "env -u A make", "timeout 5 env A=1 make", "/usr/bin/env python3 x.py", "#!/usr/bin/env bash"),
    *(
        "set -e; make",
        "set -euo pipefail\nls",
        "export A=1; ls",
        "export PATH=$PATH:/x",
        "declare -A m",
        "declare -x A=1",
    ),
    *("ls env", "ls; cat env", "python -m venv env", "rm -rf env", "source env/bin/activate", "go env GOPATH"),
    *('grep -rn "env" src', "grep -E 'foo|env|bar' x", "grep -rn 'set' .", 'echo "a; env; b"', "npm set x", "cat set"),
    *("docker ps", "docker logs web", "docker build -t env .", "docker compose up", "docker run -e A=b image pytest"),
    *(
        "kubectl get pods",
        "kubectl describe pod secret-x",
        "gh pr view 3",
        "gh auth status",
        "aws s3 ls",
        "vault",
        "op",
    ),
    *("cat inspect.py", "git log --grep env", "git config --get x", "terraform plan", "ssh host ls", "cat src/history"),
    *(
        "echo $HOME",
        "node -e 'console.log(process.env.HOME)'",
        "python -c 'print(os.environ[\"A\"])'",
        "",
        "echo \\'; ls",
    ),
)


@pytest.mark.parametrize("command", [*ENVIRONMENT, *PROGRAMS])
def test_a_command_that_prints_secrets_is_known(command: str) -> None:
    assert prints_secrets(command)
    assert prints_secrets(f"cd /w && {command}")
    assert prints_secrets(f"ls\n{command}\n")


@pytest.mark.parametrize("command", OTHERS)
def test_a_command_that_prints_none_is_any_command(command: str) -> None:
    assert not prints_secrets(command)
