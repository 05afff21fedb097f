"""The platform's API as far as table, bucket and topics are concerned, with boto3.

    platform_api.py subscribe TOPIC       create a queue that is subscribed to the topic
    platform_api.py write MANIFEST        write rows and objects as the platform and its users do
    platform_api.py read QUERIES          run every query of the API and return rows with DynamoDB types
    platform_api.py receive QUEUE_URL     receive all messages of the queue
    platform_api.py bridge QUEUE          send notifications of the bucket to EventBridge only, with a rule for the queue

The endpoint is AWS_ENDPOINT_URL. Results are printed as JSON.
"""

import json
import sys
import time
from decimal import Decimal

import boto3
from boto3.dynamodb.types import TypeSerializer

TABLE = "sparks"
BUCKET = "photos"

dynamodb = boto3.client("dynamodb")
s3 = boto3.client("s3")
events = boto3.client("events")
sns = boto3.client("sns")
sqs = boto3.client("sqs")


def subscribe(topic):
    arn = next(t["TopicArn"] for t in sns.list_topics()["Topics"] if t["TopicArn"].endswith(f":{topic}"))
    url = sqs.create_queue(QueueName=f"subscribed-{topic}")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes={"RawMessageDelivery": "true"})
    return url


def write(manifest):
    manifest = json.load(open(manifest), parse_float=Decimal)
    serialize = TypeSerializer().serialize
    for row in manifest["rows"]:
        dynamodb.put_item(TableName=TABLE, Item={name: serialize(value) for name, value in row.items()})
    for key, file in manifest["objects"].items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=open(file, "rb").read(), ContentType="image/jpeg")


def pages(**query):
    """Return all pages of a query."""
    results, start = [], {}
    while True:
        answer = dynamodb.query(TableName=TABLE, **query, **start)
        results.append({"items": answer["Items"], "last": answer.get("LastEvaluatedKey")})
        if not answer.get("LastEvaluatedKey"):
            return results
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def index(name, attribute, value, **more):
    return pages(
        IndexName=name,
        KeyConditionExpression="#k = :v",
        ExpressionAttributeNames={"#k": attribute},
        ExpressionAttributeValues={":v": {"S": value}},
        **more,
    )


def get(pk, sk):
    return dynamodb.get_item(TableName=TABLE, Key={"PK": {"S": pk}, "SK": {"S": sk}}).get("Item")


def partition(pk, **more):
    values = {":pk": {"S": pk}, **more.pop("values", {})}
    condition = "PK = :pk" + more.pop("condition", "")
    return pages(KeyConditionExpression=condition, ExpressionAttributeValues=values, **more)


def head(key):
    answer = s3.head_object(Bucket=BUCKET, Key=key)
    return {name: answer.get(name) for name in ["ContentType", "CacheControl", "ContentLength"]}


def read(queries):
    queries = json.loads(queries)
    image, person, user = queries["image"], queries["person"], queries["user"]
    by_type = lambda value, **more: index("entityType-PK-index", "entityType", value, **more)
    newest = {"ScanIndexForward": False, "Limit": queries["limit"]}
    first = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": image}},
        Limit=1,
    )
    images = by_type("IMAGE", ScanIndexForward=False)[0]["items"]
    keys = [item["images"]["M"][size]["S"] for item in images for size in ["large", "medium"]]
    persons = by_type("PERSON")
    keys += [f"persons/{item['SK']['S']}.jpg" for item in persons[0]["items"]]
    return {
        "feed": by_type("IMAGE", **newest),
        "by_user": index("uploadedBy-PK-index", "uploadedBy", user, **newest),
        "photo": first["Items"],
        "photo_persons": partition(image, condition=" AND begins_with(SK, :p)", values={":p": {"S": "PERSON#"}}),
        "person": get(f"PERSON#{person}", person),
        "persons": persons,
        "person_photos": by_type(f"TAGGING#{person}", **newest),
        "user": get(user, user),
        "users": by_type("USER"),
        "limit": get(f"LIMIT#{user}", user),
        "limit_by_index": partition(f"LIMIT#{user}", IndexName="PK-limit-index"),
        "counter": get("UNKNOWN_PERSONS", "UNKNOWN_PERSONS"),
        "objects": {key: head(key) for key in keys},
    }


def receive(url):
    received, quiet = [], 0
    while quiet < 3:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for message in answer.get("Messages", []):
            attributes = message.get("MessageAttributes", {})
            received.append({"body": json.loads(message["Body"]), "attributes": attributes})
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        quiet = 0 if answer.get("Messages") else quiet + 1
        time.sleep(0.02)
    return received


def bridge(queue):
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={"EventBridgeConfiguration": {}})
    keys = [{"prefix": "originals/"}, {"prefix": "profiles/"}, {"prefix": "profile-pictures/"}]
    pattern = {
        "source": ["aws.s3"],
        "detail-type": ["Object Created", "Object Deleted"],
        "detail": {"bucket": {"name": [BUCKET]}, "object": {"key": keys}},
    }
    events.put_rule(Name="uploads", EventPattern=json.dumps(pattern))
    group = {"SqsParameters": {"MessageGroupId": "uploads"}} if queue.endswith(".fifo") else {}
    failed = events.put_targets(Rule="uploads", Targets=[{"Id": "queue", "Arn": arn, **group}])
    return failed["FailedEntryCount"]


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"subscribe": subscribe, "write": write, "read": read, "receive": receive, "bridge": bridge}
    json.dump(commands[command](*arguments), sys.stdout)
