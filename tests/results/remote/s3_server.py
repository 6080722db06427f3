"""A server of S3's protocol: ``s3_server.py BUCKET [--accounts]``; prints its address and serves.

With ``--accounts`` it refuses credentials of accounts that it does not know.
"""

import os
import sys
import threading

if "--accounts" in sys.argv:
    os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "1"

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
address = "{}:{}".format(*server.get_host_and_port())
client = boto3.client(
    "s3",
    endpoint_url=f"http://{address}",
    region_name="us-east-1",
    aws_access_key_id="owner",
    aws_secret_access_key="owner",
)
client.create_bucket(Bucket=sys.argv[1])
print(address, flush=True)
threading.Event().wait()
