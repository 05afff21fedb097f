"""The platform's API as far as table, bucket and topics see it, through a client that is not ours.

    api.py listen TOPIC             a queue that hears the topic
    api.py write MANIFEST           rows and objects, as the platform and its users put them there
    api.py read QUESTIONS           every access pattern, answered with the types that DynamoDB gave
    api.py hear QUEUE_URL           what the queue has heard
    api.py bridge QUEUE             from now on the bucket tells EventBridge alone, and a rule there the queue

The endpoint is AWS_ENDPOINT_URL. Answers are JSON on standard output.
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


def listen(topic):
    arn = next(t["TopicArn"] for t in sns.list_topics()["Topics"] if t["TopicArn"].endswith(f":{topic}"))
    url = sqs.create_queue(QueueName=f"hears-{topic}")["QueueUrl"]
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


def pages(**question):
    """Page after page, as a client of the API asks for them."""
    answers, start = [], {}
    while True:
        answer = dynamodb.query(TableName=TABLE, **question, **start)
        answers.append({"items": answer["Items"], "last": answer.get("LastEvaluatedKey")})
        if not answer.get("LastEvaluatedKey"):
            return answers
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


def read(questions):
    asked = json.loads(questions)
    image, person, user = asked["image"], asked["person"], asked["user"]
    by_type = lambda value, **more: index("entityType-PK-index", "entityType", value, **more)
    newest = {"ScanIndexForward": False, "Limit": asked["limit"]}
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


def hear(url):
    heard, quiet = [], 0
    while quiet < 3:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for message in answer.get("Messages", []):
            attributes = message.get("MessageAttributes", {})
            heard.append({"body": json.loads(message["Body"]), "attributes": attributes})
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        quiet = 0 if answer.get("Messages") else quiet + 1
        time.sleep(0.02)
    return heard


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
    answer = {"listen": listen, "write": write, "read": read, "hear": hear, "bridge": bridge}[command](*arguments)
    json.dump(answer, sys.stdout)
