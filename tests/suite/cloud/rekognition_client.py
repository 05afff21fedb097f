"""Tests `sparks rekognition-server` with boto3.

    rekognition_client.py operations FOLDER    call every operation, on photos with synthetic faces
    rekognition_client.py model FOLDER         send every request member at and beyond the limits of the service's model
    rekognition_client.py people FOLDER        search and compare photos of persons
    rekognition_client.py restart              check the collections after a restart of the server
    rekognition_client.py signed               send requests with valid and invalid signatures
    rekognition_client.py failure ERROR        check the error of a server with injected failures

The endpoint is AWS_ENDPOINT_URL. Every response is validated against the service model of botocore, member by member.
The result is printed as JSON; a failed check ends the program with an error.
"""

import json
import pathlib
import re
import sys
import uuid
from email.utils import parsedate_to_datetime

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

# Errors of the AWS request framework, which operations do not declare.
FRAMEWORK_ERRORS = {
    "AccessDeniedException",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "SerializationException",
    "UnrecognizedClientException",
    "ValidationException",
}
UNKNOWN_FACE = str(uuid.UUID(int=0))
OPERATIONS = """CompareFaces CreateCollection DeleteCollection DeleteFaces DescribeCollection DetectFaces IndexFaces
    ListCollections ListFaces SearchFaces SearchFacesByImage""".split()

responses = 0


def validate(shape, value, path):
    """Validate a value of a response against its shape."""
    limits, kind = shape.metadata, shape.type_name
    if kind == "structure":
        assert isinstance(value, dict), (path, value)
        for name in shape.required_members:
            assert name in value, f"{path}: {name} is missing"
        for name, member in value.items():
            assert name in shape.members, f"{path}: {name} is unknown"
            validate(shape.members[name], member, f"{path}.{name}")
    elif kind == "list":
        assert isinstance(value, list), (path, value)
        assert len(value) <= limits.get("max", len(value)), path
        for place, member in enumerate(value):
            validate(shape.member, member, f"{path}[{place}]")
    elif kind == "string":
        assert isinstance(value, str), (path, value)
        assert limits.get("min", 0) <= len(value) <= limits.get("max", len(value)), (path, value)
        assert re.fullmatch(limits.get("pattern", ".*"), value), (path, value)
        assert value in (limits.get("enum") or [value]), (path, value)
    else:
        kinds = {"integer": int, "long": int, "float": (int, float), "timestamp": (int, float), "boolean": bool}
        assert isinstance(value, kinds[kind]), (path, value)
        assert kind == "boolean" or not isinstance(value, bool), (path, value)
        assert limits.get("min", value) <= value <= limits.get("max", value), (path, value)


def validate_response(response_dict, operation_model, **_):
    """Validate a response before the client drops unknown members."""
    global responses
    responses += 1
    body, headers = json.loads(response_dict["body"]), response_dict["headers"]
    assert uuid.UUID(headers["x-amzn-requestid"]), headers
    assert headers["content-type"] == "application/x-amz-json-1.1", headers
    if response_dict["status_code"] == 200:
        return validate(operation_model.output_shape, body, operation_model.name)
    declared = {shape.name for shape in operation_model.error_shapes}
    assert body["__type"] in declared | FRAMEWORK_ERRORS, (operation_model.name, body)
    assert set(body) == {"__type", "Code", "Logref", "Message"} and body["Message"], body


def client(**more):
    rek = boto3.client("rekognition", config=Config(retries={"total_max_attempts": 1}, **more))
    rek.meta.events.register("before-parse.rekognition", validate_response)
    return rek


def refused(kind, call, **request):
    """Assert that the request is refused with this error and return the message."""
    try:
        call(**request)
    except ClientError as error:
        assert error.response["Error"]["Code"] == kind, (kind, error)
        assert type(error).__name__ in (kind, "ClientError"), error
        return error.response["Error"]["Message"]
    raise AssertionError(f"{request.keys()} was not refused with {kind}")


def photos(folder):
    return {path.stem: {"Bytes": path.read_bytes()} for path in pathlib.Path(folder).iterdir() if path.suffix != ".md"}


def names(response):
    return [match["Face"].get("ExternalImageId") for match in response["FaceMatches"]]


def operations(folder):
    rek, photo = client(), photos(folder)

    created = rek.create_collection(CollectionId="family", Tags={"of": "sparks"})
    assert created["StatusCode"] == 200 and created["CollectionArn"].endswith(":collection/family"), created
    message = refused("ResourceAlreadyExistsException", rek.create_collection, CollectionId="family")
    assert message == "The collection id: family already exists", message

    index = lambda name, **more: rek.index_faces(
        CollectionId="family", Image=photo[name], ExternalImageId=name, **more
    )
    first = {name: index(name) for name in ["ann-1", "bob-1", "cid-1"]}
    ids = {name: response["FaceRecords"][0]["Face"]["FaceId"] for name, response in first.items()}
    assert len(set(ids.values())) == 3
    again = index("ann-1", DetectionAttributes=["ALL"])
    assert again["FaceRecords"][0]["Face"]["FaceId"] == ids["ann-1"], "the same photo under the same name is enrolled once"
    group = index("large-bob-small-ann", MaxFaces=1)
    assert [face["Reasons"] for face in group["UnindexedFaces"]] == [["EXCEEDS_MAX_FACES"]], group
    assert rek.index_faces(CollectionId="family", Image=photo["empty"])["FaceRecords"] == []

    search = lambda name, **more: rek.search_faces_by_image(CollectionId="family", Image=photo[name], **more)
    found = search("ann-2")
    assert names(found) == ["ann-1"] and found["FaceMatches"][0]["Similarity"] > 80, found
    assert names(search("ann-2-png")) == ["ann-1"]
    largest = search("large-ann-small-bob")
    assert names(largest) == ["ann-1"], "only the largest face"
    assert largest["SearchedFaceBoundingBox"]["Width"] > 0.4, largest
    assert sorted(names(search("bob-2"))) == ["bob-1", "large-bob-small-ann"]
    assert names(search("dan-1")) == []
    every = search("ann-2", FaceMatchThreshold=0)["FaceMatches"]
    similarities = [match["Similarity"] for match in every]
    assert len(every) == 4 and similarities == sorted(similarities, reverse=True), similarities
    assert len(search("ann-2", FaceMatchThreshold=0, MaxFaces=2)["FaceMatches"]) == 2
    message = refused("InvalidParameterException", search, name="empty")
    assert message == "There are no faces in the image. Should be at least 1.", message

    by_face = rek.search_faces(CollectionId="family", FaceId=ids["bob-1"])
    assert by_face["SearchedFaceId"] == ids["bob-1"] and names(by_face) == ["large-bob-small-ann"], by_face
    refused("InvalidParameterException", rek.search_faces, CollectionId="family", FaceId=UNKNOWN_FACE)

    seen = rek.detect_faces(Image=photo["large-ann-small-bob"], Attributes=["ALL"])["FaceDetails"]
    widths = [face["BoundingBox"]["Width"] for face in seen]
    assert len(seen) == 2 and widths == sorted(widths, reverse=True), widths
    assert [mark["Type"] for mark in seen[0]["Landmarks"]] == "eyeLeft eyeRight nose mouthLeft mouthRight".split()
    assert rek.detect_faces(Image=photo["empty"])["FaceDetails"] == []

    compare = lambda a, b, **more: rek.compare_faces(SourceImage=photo[a], TargetImage=photo[b], **more)
    both = compare("ann-1", "large-bob-small-ann")
    assert len(both["FaceMatches"]) == 1 and len(both["UnmatchedFaces"]) == 1, both
    assert both["FaceMatches"][0]["Face"]["BoundingBox"]["Width"] < both["UnmatchedFaces"][0]["BoundingBox"]["Width"]
    assert len(compare("large-ann-small-bob", "bob-1")["FaceMatches"]) == 0, "only the largest face"
    assert len(compare("ann-1", "bob-1", SimilarityThreshold=0)["FaceMatches"]) == 1
    refused("InvalidParameterException", compare, a="empty", b="ann-1")
    assert compare("ann-1", "empty")["FaceMatches"] == []

    pages = list(rek.get_paginator("list_faces").paginate(CollectionId="family", PaginationConfig={"PageSize": 3}))
    listed = [face["FaceId"] for page in pages for face in page["Faces"]]
    assert [len(page["Faces"]) for page in pages] == [3, 1] and len(set(listed)) == 4, pages
    only = rek.list_faces(CollectionId="family", FaceIds=[ids["ann-1"], UNKNOWN_FACE])["Faces"]
    assert [face["FaceId"] for face in only] == [ids["ann-1"]], only
    refused("InvalidPaginationTokenException", rek.list_faces, CollectionId="family", NextToken="invalid")
    refused("ResourceNotFoundException", rek.list_faces, CollectionId="family", UserId="ann")
    for name in ["b", "c"]:
        rek.create_collection(CollectionId=name)
    pages = list(rek.get_paginator("list_collections").paginate(PaginationConfig={"PageSize": 2}))
    assert sorted(name for page in pages for name in page["CollectionIds"]) == ["b", "c", "family"], pages
    assert [len(page["CollectionIds"]) for page in pages] == [2, 1], pages
    refused("InvalidPaginationTokenException", rek.list_collections, NextToken=pages[0]["NextToken"][:-2])

    deletion = rek.delete_faces(CollectionId="family", FaceIds=[ids["cid-1"], UNKNOWN_FACE])
    assert deletion["DeletedFaces"] == [ids["cid-1"]], deletion
    assert deletion["UnsuccessfulFaceDeletions"] == [{"FaceId": UNKNOWN_FACE, "Reasons": ["FACE_NOT_FOUND"]}], deletion
    assert names(search("cid-1")) == []
    collection = rek.describe_collection(CollectionId="family")
    assert (collection["FaceCount"], collection["UserCount"]) == (3, 0), collection
    assert collection["CollectionARN"].startswith("arn:aws:"), collection
    assert abs(collection["CreationTimestamp"].timestamp() - server_time(collection)) < 600, collection
    assert rek.delete_collection(CollectionId="b")["StatusCode"] == 200

    invalid_photos(rek, photo)
    for call, more in [
        (rek.delete_collection, {}),
        (rek.describe_collection, {}),
        (rek.list_faces, {}),
        (rek.index_faces, {"Image": photo["ann-1"]}),
        (rek.search_faces_by_image, {"Image": photo["ann-1"]}),
        (rek.search_faces, {"FaceId": UNKNOWN_FACE}),
        (rek.delete_faces, {"FaceIds": [UNKNOWN_FACE]}),
    ]:
        message = refused("ResourceNotFoundException", call, CollectionId="b", **more)
        assert message == "The collection id: b does not exist", message


def server_time(response):
    """Return the time in the date header of the response."""
    return parsedate_to_datetime(response["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()


def invalid_photos(rek, photo):
    jpeg = photo["ann-1"]["Bytes"]
    for kind, image in [
        ("InvalidImageFormatException", {"Bytes": b"GIF89a" + jpeg}),
        ("InvalidImageFormatException", photo["webp"]),
        ("InvalidImageFormatException", {"Bytes": jpeg[: len(jpeg) // 2]}),
        ("InvalidParameterException", photo["tiny"]),
        ("InvalidParameterException", {}),
        ("InvalidParameterException", {"Bytes": jpeg, "S3Object": {"Bucket": "photos", "Name": "a.jpg"}}),
        ("InvalidS3ObjectException", {"S3Object": {"Bucket": "photos", "Name": "a.jpg"}}),
        ("ImageTooLargeException", photo["oversized"]),
        ("ValidationException", {"Bytes": jpeg + bytes(5 * 1024 * 1024)}),
    ]:
        refused(kind, rek.detect_faces, Image=image)
        refused(kind, rek.index_faces, CollectionId="family", Image=image)
        refused(kind, rek.search_faces_by_image, CollectionId="family", Image=image)
        refused(kind, rek.compare_faces, SourceImage=photo["ann-1"], TargetImage=image)


def model(folder):
    """Assert that requests are accepted if and only if the model allows them, changing one member at a time."""
    # Without validation by the client, which would refuse some requests itself.
    rek, jpeg = client(parameter_validation=False), photos(folder)["empty"]["Bytes"]
    rek.create_collection(CollectionId="existing")
    counts = {"allowed": 0, "refused": 0}
    for operation in OPERATIONS:
        shape = rek.meta.service_model.operation_model(operation).input_shape
        call = getattr(rek, re.sub("(?<!^)(?=[A-Z])", "_", operation).lower())
        for request, allowed, description in structures(shape, jpeg):
            kind = None
            try:
                call(**request)
            except ClientError as error:
                kind = error.response["Error"]["Code"]
            is_accepted = kind not in ("ValidationException", "SerializationException")
            assert is_accepted == allowed, (operation, description, kind)
            counts["allowed" if allowed else "refused"] += 1
        if operation == "CreateCollection":
            for page in rek.get_paginator("list_collections").paginate():
                for name in set(page["CollectionIds"]) - {"existing"}:
                    rek.delete_collection(CollectionId=name)
    return counts


SAMPLES = {
    "CollectionId": "existing",
    "FaceId": UNKNOWN_FACE,
    "S3Bucket": "photos",
    "S3ObjectName": "a.jpg",
    "TagKey": "key",
}


def sample(shape, jpeg):
    """Return a value that the model allows."""
    if shape.name in SAMPLES:
        return SAMPLES[shape.name]
    if shape.name == "Image":
        return {"Bytes": jpeg}
    kind, limits = shape.type_name, shape.metadata
    if kind == "structure":
        return {name: sample(shape.members[name], jpeg) for name in shape.required_members}
    if kind == "list":
        return [sample(shape.member, jpeg)]
    if kind == "map":
        return {sample(shape.key, jpeg): sample(shape.value, jpeg)}
    if kind == "string":
        return (limits.get("enum") or ["x" * max(1, limits.get("min", 1))])[0]
    return jpeg if kind == "blob" else limits.get("min", 1)


def structures(shape, jpeg):
    """Yield requests, whether the model allows them, and a description."""
    # The collection of a request exists, unless the request creates or deletes it.
    minimal = sample(shape, jpeg)
    if shape.name == "CreateCollectionRequest":
        minimal["CollectionId"] = "other"
    elif shape.name == "DeleteCollectionRequest":
        minimal["CollectionId"] = "missing"
    if shape.name == "S3Object":
        minimal = {"Bucket": "photos", "Name": "a.jpg"}
    yield minimal, True, "minimal"
    for name in shape.required_members:
        yield {key: value for key, value in minimal.items() if key != name}, False, f"without {name}"
    for name, member in shape.members.items():
        base = {} if name == "S3Object" else minimal
        for value, allowed, description in values(member, jpeg):
            yield {**base, name: value}, allowed, f"{name}: {description}"


def values(shape, jpeg):
    kind, limits = shape.type_name, shape.metadata
    low, high = limits.get("min"), limits.get("max")
    if kind == "structure":
        yield from structures(shape, jpeg)
    elif kind == "list":
        member = sample(shape.member, jpeg)
        for length in {low or 1, high or 1}:
            yield [member] * length, True, f"{length} members"
        if low:
            yield [member] * (low - 1), False, "too few"
        if high:
            yield [member] * (high + 1), False, "too many"
        for value, allowed, description in values(shape.member, jpeg):
            yield [value], allowed, description
    elif kind == "map":
        yield {f"key{n}": "" for n in range(high)}, True, "maximum number"
        yield {f"key{n}": "" for n in range(high + 1)}, False, "too many"
        for value, allowed, description in values(shape.key, jpeg):
            if isinstance(value, str):  # JSON keys are strings.
                yield {value: "x"}, allowed, f"key {description}"
        for value, allowed, description in values(shape.value, jpeg):
            yield {"key": value}, allowed, f"value {description}"
    elif kind == "blob":
        yield jpeg + bytes(high - len(jpeg)), True, "maximum length"
        yield jpeg + bytes(high + 1 - len(jpeg)), False, "too long"
        yield b"", False, "empty"
    elif kind == "string":
        yield from texts(shape, low, high)
    else:
        step = 1 if kind == "integer" else 0.5
        yield low, True, "minimum"
        yield low - step, False, "too low"
        yield True, False, "not a number"
        if high is not None:
            yield high, True, "maximum"
            yield high + step, False, "too high"


def texts(shape, low, high):
    pattern = shape.metadata.get("pattern", ".*").replace(r"\p{L}\p{Z}\p{N}", "A-Za-z0-9 ")
    candidates = ["x" * length for length in (low, high) if length]
    candidates += ["a b", "a:b", "a.b_c-d", "a/b", "aws:x", "é*", "", UNKNOWN_FACE, UNKNOWN_FACE.replace("0", "G"), UNKNOWN_FACE + "0"]
    candidates += ["x" * ((high or 1) + 1), *(shape.enum or [])]
    for text in candidates:
        allowed = (low or 0) <= len(text) <= (high or len(text))
        allowed = allowed and re.fullmatch(pattern, text) is not None and text in (shape.enum or [text])
        yield text, allowed, f"text {text[:40]!r}"
    yield 7, False, "a number"


def people(folder):
    rek, photo = client(), photos(folder)
    rek.create_collection(CollectionId="people")
    for name in ["obama-1", "biden", "collins"]:
        response = rek.index_faces(CollectionId="people", Image=photo[name], ExternalImageId=name, DetectionAttributes=["ALL"])
        assert len(response["FaceRecords"]) == 1, response
        detail = response["FaceRecords"][0]["FaceDetail"]
        assert {"AgeRange", "Gender", "Emotions", "Pose"} <= set(detail), detail
        assert set(detail["Pose"]) == {"Roll", "Yaw", "Pitch"}, detail
    for name in ["obama-2", "obama-3"]:
        assert names(rek.search_faces_by_image(CollectionId="people", Image=photo[name])) == ["obama-1"], name
    same = rek.compare_faces(SourceImage=photo["obama-2"], TargetImage=photo["obama-3"])
    other = rek.compare_faces(SourceImage=photo["obama-2"], TargetImage=photo["biden"])
    assert (len(same["FaceMatches"]), len(other["FaceMatches"])) == (1, 0), (same, other)


def restart():
    rek = client()
    faces = rek.list_faces(CollectionId="family")["Faces"]
    assert sorted(face["ExternalImageId"] for face in faces) == ["ann-1", "bob-1", "large-bob-small-ann"], faces
    bob = next(face["FaceId"] for face in faces if face["ExternalImageId"] == "bob-1")
    assert names(rek.search_faces(CollectionId="family", FaceId=bob)) == ["large-bob-small-ann"]
    assert sorted(rek.list_collections()["CollectionIds"]) == ["c", "family"]


def signed():
    keys = lambda access, secret: boto3.client(
        "rekognition", aws_access_key_id=access, aws_secret_access_key=secret, config=Config(retries={"total_max_attempts": 1})
    )
    for text in ["plain", "with spaces and ümläut"]:
        right = keys("the-key", "the-secret")
        right.create_collection(CollectionId=str(uuid.uuid4()), Tags={"text": text})
    refused("InvalidSignatureException", keys("the-key", "wrong").list_collections)
    refused("UnrecognizedClientException", keys("wrong", "the-secret").list_collections)


def failure(kind):
    rek = client()
    if kind in ("ThrottlingException", "ProvisionedThroughputExceededException"):
        rek.list_collections()
    refused(kind, rek.list_collections)
    status = 500 if kind == "InternalServerError" else 400
    try:
        rek.describe_collection(CollectionId="c")
    except getattr(rek.exceptions, kind) as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error.response


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"operations": operations, "model": model, "people": people, "restart": restart, "signed": signed, "failure": failure}
    json.dump({"result": commands[command](*arguments), "responses": responses}, sys.stdout)
