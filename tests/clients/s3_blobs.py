"""Tests large files in an S3 bucket: a real server of Wattle, and moto in place of Amazon's service.

s3_blobs.py BINARY RECORDING FOLDER
"""

import atexit
import logging
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import time

import boto3
import requests
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
binary, recording, folder = sys.argv[1:]
TOKEN = "a-token-for-the-tests"
POLICY = """{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}"""
large = random.Random(7).randbytes(1 << 20)

s3_server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
s3_server.start()
atexit.register(lambda: s3_server.stop())
host, port = s3_server.get_host_and_port()
endpoint = f"http://{host}:{port}"


def client(name):
    return boto3.client(
        name,
        endpoint_url=endpoint,
        region_name="eu-west-1",
        aws_access_key_id="setup",
        aws_secret_access_key="setup",
    )


# The empty object that marks the location.
MARKER = "wattle/wattle"


def objects():
    """Returns the names of all objects except the marker, which must be there."""
    listed = client("s3").list_objects_v2(Bucket="files").get("Contents", [])
    names = [entry["Key"] for entry in listed]
    assert MARKER in names, names
    return [name for name in names if name != MARKER]


def wants_signatures(does):
    """Makes moto check the signature of each request, or accept all requests."""
    count = "0" if does else "inf"
    requests.post(f"{endpoint}/moto-api/reset-auth", data=count).raise_for_status()


# A user whose keys moto knows, so that it can check signatures.
client("s3").create_bucket(
    Bucket="files", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
)
iam = client("iam")
iam.create_user(UserName="wattle")
iam.put_user_policy(UserName="wattle", PolicyName="files", PolicyDocument=POLICY)
key = iam.create_access_key(UserName="wattle")["AccessKey"]
settings = {
    "HOME": folder,
    "PATH": os.environ["PATH"],
    "WATTLE_TOKEN": TOKEN,
    "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
    "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    "AWS_REGION": "eu-west-1",
    "AWS_ENDPOINT_URL": endpoint,
}


class Server:
    """A server of Wattle with its own log."""

    def __init__(self, name, *options, **environment):
        log = open(f"{folder}/{name}.log", "w+")
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--cassette", recording, *options],
            cwd=folder,
            env={**settings, **environment},
            stderr=log,
        )
        atexit.register(self.process.kill)
        for _ in range(200):
            log.seek(0)
            found = re.search(r"listening on (\S+)", log.read())
            if found:
                break
            time.sleep(0.1)
        assert found, open(log.name).read()
        self.url = found[1]

    def request(self, method, path, **options):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return requests.request(
            method, f"{self.url}/api/{path}", headers=headers, timeout=60, **options
        )

    def put(self, path, content):
        return self.request("PUT", f"sessions/{path}", data=content)

    def get(self, path):
        return self.request("GET", f"sessions/{path}")

    def status(self, run):
        return self.request("GET", f"run/{run}").json()["status"]

    def stop(self):
        self.process.terminate()
        assert self.process.wait(30) == 0


def wattle(*arguments, expected=(), code=0):
    done = subprocess.run(
        [binary, *arguments],
        cwd=folder,
        env={**settings, "WATTLE_BLOBS": "s3://files/wattle"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done
    assert all(text in done.stdout for text in expected), done


wants_signatures(True)
server = Server("first", "--blobs", "s3://files/wattle")
assert server.put("one/files/small.txt", b"small").status_code == 204
for session in ("one", "two"):
    answer = server.put(f"{session}/files/large.bin", large)
    assert answer.status_code == 204, answer.text
    assert server.get(f"{session}/files/large.bin").content == large
assert server.get("one/files/small.txt").content == b"small"
server.stop()
wants_signatures(False)
names = objects()
assert len(names) == 2, names
for name in names:
    assert re.fullmatch(r"wattle/(..)/\1[0-9a-f]{62}-[0-9A-Z]{26}", name), name

wants_signatures(True)
wrong = Server("wrong", "--blobs", "s3://files/wattle", AWS_SECRET_ACCESS_KEY="not-the-secret-key")
answer = wrong.get("one/files/large.bin")
assert answer.status_code == 503, (answer.status_code, answer.text)
assert "not-the-secret-key" not in answer.text
wrong.stop()

second = Server("second", "--blobs", "s3://files/wattle")
assert second.get("two/files/large.bin").content == large
wattle("store", "check")

# Without the service, small files work as before. Large ones do once it is back.
s3_server.stop()
answer = second.put("three/files/large.bin", large[::-1])
assert answer.status_code == 503, (answer.status_code, answer.text)
assert answer.json()["error"]["code"] == "unavailable", answer.text
assert second.put("three/files/small.txt", b"small").status_code == 204
started = second.request("POST", "run", json={"prompt": "Hello?", "session_id": "two"})
run = started.json()["id"]
time.sleep(5)
assert second.status(run) in ("queued", "running"), second.request("GET", f"run/{run}").text
s3_server = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
s3_server.start()
wants_signatures(False)
answer = second.put("three/files/large.bin", large[::-1])
assert answer.status_code == 204, answer.text
assert second.get("three/files/large.bin").content == large[::-1]
assert second.get("three/files/small.txt").content == b"small"
for _ in range(60):
    if second.status(run) == "done":
        break
    time.sleep(0.5)
assert second.status(run) == "done", second.request("GET", f"run/{run}").text

# Objects are removed in two steps, an hour after the last use. Here, the hour is over at once.
assert second.request("DELETE", "sessions/three").status_code == 204
second.stop()
[store] = pathlib.Path(folder).glob("**/wattle.db")
before = len(objects())
for _ in range(2):
    with sqlite3.connect(store) as database:
        database.execute("UPDATE blob SET used = 0")
    database.close()
    wattle("prune")
names = objects()
assert len(names) == before - 1, (before, names)
wattle("store", "check")
for name in names:
    client("s3").delete_object(Bucket="files", Key=name)
wattle("store", "check", expected=("blob ", "failed to read the object"), code=1)
print("large files in S3: ok")
