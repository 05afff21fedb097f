"""Whether what deploys the worker agrees with its settings, and with what the program does. Used by `docker/lint`.

Each check is a generator of findings; none means that all is well.
"""

import json
import pathlib
import re

import yaml
from cfnlint.decode import cfn_yaml

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
KUBERNETES = DOCKER / "kubernetes"

# Time after the grace period in which a worker gives back what it has in hand.
GIVING_BACK = 10
# What a worker itself may take in MiB: models, gallery, pictures on their way.
WORKER_MEMORY = 512
# The longest policy that IAM takes, without blanks.
LONGEST_POLICY = 6144
# Variables that are no settings.
NO_SETTINGS = {"SPARKS_CONFIG", "SPARKS_LOG", "SPARKS_LOG_FORMAT"}
# What is expected to differ from config/aws.toml.
OF_THE_PLACE = {"jobs", "aws.region", "aws.endpoint"}

# What KEDA knows, as far as we use it: its definitions are in no package index, and it ignores what it does not know.
OF_KEDA = {
    "a ScaledObject": {
        "advanced", "cooldownPeriod", "fallback", "maxReplicaCount", "minReplicaCount", "pollingInterval", "scaleTargetRef", "triggers",
    },
    "a trigger": {"authenticationRef", "metadata", "metricType", "name", "type"},
    "an SQS trigger": {
        "activationQueueLength", "awsEndpoint", "awsRegion", "queueLength", "queueURL", "scaleOnDelayed", "scaleOnInFlight",
    },
}

# The permission that each call needs. One that is not here is a finding: somebody has to look it up.
PERMISSIONS = {
    "batch_get_item": {"dynamodb:BatchGetItem"},
    "transact_get_items": {"dynamodb:GetItem"},
    "compare_faces": {"rekognition:CompareFaces"},
    "delete_faces": {"rekognition:DeleteFaces"},
    "describe_collection": {"rekognition:DescribeCollection"},
    "detect_faces": {"rekognition:DetectFaces"},
    "index_faces": {"rekognition:IndexFaces"},
    "list_faces": {"rekognition:ListFaces"},
    "search_faces_by_image": {"rekognition:SearchFacesByImage"},
    "change_message_visibility": {"sqs:ChangeMessageVisibility"},
    "change_message_visibility_batch": {"sqs:ChangeMessageVisibility"},
    "delete_message_batch": {"sqs:DeleteMessage"},
    "delete_object": {"s3:DeleteObject"},
    "get_item": {"dynamodb:GetItem"},
    "get_object": {"s3:GetObject"},
    "get_queue_attributes": {"sqs:GetQueueAttributes"},
    "get_queue_url": {"sqs:GetQueueUrl"},
    "get_topic_attributes": {"sns:GetTopicAttributes"},
    "head_bucket": {"s3:ListBucket"},
    "head_object": {"s3:GetObject"},
    "list_objects_v2": {"s3:ListBucket"},
    "list_topics": {"sns:ListTopics"},
    "publish_batch": {"sns:Publish"},
    "put_item": {"dynamodb:PutItem"},
    "put_object": {"s3:PutObject"},
    "query": {"dynamodb:Query"},
    "receive_message": {"sqs:ReceiveMessage"},
    "scan": {"dynamodb:Scan"},
    "send_message": {"sqs:SendMessage"},
    "transact_write_items": {
        "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
    },
}


def source(path):
    return (ROOT / path).read_text()


def template(path):
    return cfn_yaml.load(str(DOCKER / path))


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def is_kubernetes_own(path):
    """Whether all in the file is known to Kubernetes itself."""
    return not any(re.match(r"keda\.sh|kustomize", document["apiVersion"]) for document in documents(path))


def flat(settings, prefix=""):
    found = {}
    for name, value in settings.items():
        nested = isinstance(value, dict)
        found.update(flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value})
    return found


def settings(*files):
    """Settings in layers, by name."""
    layers = {}
    for file in ["config/default.toml", *files]:
        layers.update(flat(tomllib.loads(source(file))))
    return layers


CLOUD = settings("config/aws.toml")


def with_environment(variables):
    """The settings of the image's own file under these variables, and what is wrong with them."""
    found, wrong = dict(CLOUD), []
    names = {"SPARKS_" + key.upper().replace(".", "_"): key for key in found}
    for name, value in variables.items():
        if name in names:
            known = found[names[name]]
            found[names[name]] = type(known)(value)
        elif name.startswith("SPARKS_") and name not in NO_SETTINGS:
            wrong.append(f"{name} is no setting")
    return found, wrong


def differences(where, found):
    for key, value in found.items():
        if key not in OF_THE_PLACE and value != CLOUD.get(key):
            yield f"{where}: {key} is {value!r}, in config/aws.toml {CLOUD.get(key)!r}"
    for key in CLOUD.keys() - found.keys():
        yield f"{where}: {key} is missing"


def defaults(path):
    return {name: parameter.get("Default") for name, parameter in template(path)["Parameters"].items()}


def ecs():
    """The worker's container, with references to parameters resolved; and its task."""
    stack, known = template("ecs/service.yaml"), defaults("ecs/service.yaml")
    task = stack["Resources"]["Worker"]["Properties"]
    container = task["ContainerDefinitions"][0]
    value = lambda value: known[value["Ref"]] if isinstance(value, dict) else value
    # What is there on a condition is not there by default.
    plain = [entry for entry in container["Environment"] if "Fn::If" not in entry]
    return container, task, {entry["Name"]: value(entry["Value"]) for entry in plain}


def deployment():
    return documents(KUBERNETES / "base/deployment.yaml")[0]["spec"]["template"]["spec"]


def compose():
    return yaml.safe_load(source("docker/compose.yaml"))["services"]


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)\s*(\w*)", str(text)).groups()
    return int(number) * {"Gi": 1024, "g": 1024, "Mi": 1, "m": 1, "": 1}[unit]


def settings_agree():
    yield from differences("docker/kubernetes", settings("docker/kubernetes/base/sparks.toml"))
    for where, variables in [("docker/ecs", ecs()[2]), ("docker/compose.yaml", compose()["worker"]["environment"])]:
        found, wrong = with_environment(variables)
        yield from (f"{where}: {what}" for what in wrong)
        yield from differences(where, found)
        if variables.get("SPARKS_CONFIG") not in source("docker/Dockerfile"):
            yield f"{where}: SPARKS_CONFIG is no file of the image"


def names_agree():
    """Parameters of templates say in brackets which setting they are."""
    for path in ["cloudformation/resources.yaml", "cloudformation/roles.yaml", "ecs/service.yaml"]:
        for name, parameter in template(path)["Parameters"].items():
            named = re.search(r"\(([a-z_.]+)\)", parameter.get("Description", ""))
            if named and parameter.get("Default") != CLOUD.get(named[1]):
                yield f"docker/{path}: {name} is {parameter.get('Default')!r}, {named[1]} is {CLOUD.get(named[1])!r}"


def drains_agree():
    periods = {
        "terminationGracePeriodSeconds": deployment()["terminationGracePeriodSeconds"],
        "StopTimeout": ecs()[0]["StopTimeout"],
        "stop_grace_period": int(compose()["worker"]["stop_grace_period"].removesuffix("s")),
    }
    needed = CLOUD["run.grace_seconds"] + GIVING_BACK
    for name, period in periods.items():
        if period < needed:
            yield f"{name} is {period}: run.grace_seconds and {GIVING_BACK} s to give work back are {needed}"


def resources_agree():
    container, task, variables = ecs()
    pod = deployment()["containers"][0]["resources"]
    places = {
        "docker/kubernetes": (settings("docker/kubernetes/base/sparks.toml")["jobs"], pod["limits"]["memory"]),
        "docker/ecs": (int(variables["SPARKS_JOBS"]), task["Memory"]),
        "docker/compose.yaml": (int(compose()["worker"]["environment"]["SPARKS_JOBS"]), compose()["worker"]["mem_limit"]),
    }
    for where, (jobs, memory) in places.items():
        needed = jobs * CLOUD["limits.max_memory_mb"] + WORKER_MEMORY
        if mebibytes(memory) < needed:
            yield f"{where}: {memory} of memory are less than the {needed} MiB that {jobs} photos at once may take"
    for where, cores, jobs in [
        ("docker/kubernetes", int(pod["requests"]["cpu"]), places["docker/kubernetes"][0]),
        ("docker/ecs", int(task["Cpu"]) // 1024, places["docker/ecs"][0]),
    ]:
        if cores != jobs:
            yield f"{where}: {cores} cores for {jobs} photos at once"


def probes_agree():
    port = CLOUD["run.listen"].rpartition(":")[2]
    container = deployment()["containers"][0]
    if [str(known["containerPort"]) for known in container["ports"]] != [port]:
        yield f"docker/kubernetes: the port is not that of run.listen, {port}"
    asked = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
    asked |= {"HealthCheck": ecs()[0]["HealthCheck"]["Command"][-1], "HEALTHCHECK": source("docker/Dockerfile")}
    for where, text in asked.items():
        paths = re.findall(r"/(?:healthz|readyz)\b", text)
        if not paths or any(f'"{path}"' not in source("worker/src/telemetry/http.rs") for path in paths):
            yield f"{where}: asks for what the worker does not answer"
    for where in ["HealthCheck", "HEALTHCHECK"]:
        if f"127.0.0.1:{port}/" not in asked[where]:
            yield f"{where}: does not ask the port of run.listen, {port}"


def scaling_agrees():
    trigger = documents(KUBERNETES / "keda/scaled-object.yaml")[0]["spec"]
    stack = template("ecs/service.yaml")["Resources"]
    target = stack["ByBacklog"]["Properties"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    autoscaler = documents(KUBERNETES / "hpa/autoscaler.yaml")[0]["spec"]
    name = documents(KUBERNETES / "base/deployment.yaml")[0]["metadata"]["name"]
    queue = trigger["triggers"][0]["metadata"]
    pod = settings("docker/kubernetes/base/sparks.toml")
    equal = {
        "the queue": (queue["queueURL"], CLOUD["aws.queue"]),
        "the region": (queue["awsRegion"], pod["aws.region"]),
        "messages for each worker": (int(queue["queueLength"]), target),
        "the most workers": (trigger["maxReplicaCount"], autoscaler["maxReplicas"]),
        "the most workers, on ECS": (trigger["maxReplicaCount"], defaults("ecs/service.yaml")["MaxWorkers"]),
        "what KEDA scales": (trigger["scaleTargetRef"]["name"], name),
        "what the autoscaler scales": (autoscaler["scaleTargetRef"]["name"], name),
    }
    for what, (one, other) in equal.items():
        if one != other:
            yield f"{what}: {one!r} here, {other!r} there"
    for (what, known), found in zip(OF_KEDA.items(), [trigger, trigger["triggers"][0], queue]):
        yield from (f"{what} has no {name}" for name in sorted(found.keys() - known))


def tables_agree():
    """As worker/aws/src/setup/tables.rs makes them."""
    program = source("worker/aws/src/setup/tables.rs")
    found = template("cloudformation/resources.yaml")["Resources"]
    platform, log, faces = (found[name]["Properties"] for name in ["PlatformTable", "Log", "Faces"])
    keys = lambda schema: [key["AttributeName"] for key in schema["KeySchema"]]
    for table in (platform, log, faces):
        if keys(table) != ["PK", "SK"]:
            yield f"{table['TableName']}: keys are {keys(table)}"
    wanted = dict(re.findall(r'Index \{ name: "([^"]+)", attribute: "([^"]+)" \}', program))
    wanted = {name: [attribute, "PK"] for name, attribute in wanted.items()}
    wanted[re.search(r'BY_LIMIT: &str = "([^"]+)"', program)[1]] = ["PK", "limit"]
    indexes = [*platform["GlobalSecondaryIndexes"], *platform["LocalSecondaryIndexes"]]
    if {index["IndexName"]: keys(index) for index in indexes} != wanted:
        yield f"indexes of the platform's table are not {wanted}"
    if any(index["Projection"]["ProjectionType"] != "ALL" for index in indexes):
        yield "an index does not hold everything"
    if platform["TimeToLiveSpecification"]["AttributeName"] not in re.findall(r'attribute_name\("(\w+)"\)', program):
        yield "rows go by another attribute"
    if not (log["DeletionProtectionEnabled"] and log["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]):
        yield "the log can be lost"
    if faces["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]:
        yield "what is erased of the signatures could be had back"
    kept = {found[queue]["Properties"]["MessageRetentionPeriod"] for queue in ["Work", "DeadLetters"]}
    if kept != {int(re.search(r'FOURTEEN_DAYS: &str = "(\d+)"', source("worker/aws/src/setup/queues.rs"))[1])}:
        yield f"messages are kept for {kept} seconds"


def notifications_agree():
    """As worker/src/wiring.rs wishes and worker/aws/src/setup/bucket.rs says."""
    prefixes = json.loads(re.search(r"prefixes: (\[[^\]]*\])", source("worker/src/wiring.rs"))[1])
    events = set(re.findall(r'Event::from\("([^"]+)"\)', source("worker/aws/src/setup/bucket.rs")))
    wanted = {(event, prefix) for event in events for prefix in prefixes}
    bucket = template("cloudformation/resources.yaml")["Resources"]["Photos"]["Properties"]
    told = bucket["NotificationConfiguration"]["TopicConfigurations"]
    found = {(one["Event"], rule["Value"]) for one in told for rule in one["Filter"]["S3Key"]["Rules"]}
    if found != wanted:
        yield f"the bucket tells of {sorted(found ^ wanted)} in one of the two only"


def statements(document):
    for statement in document["Statement"]:
        actions, resources = statement["Action"], statement["Resource"]
        as_list = lambda one: one if isinstance(one, list) else [one]
        yield statement, set(as_list(actions)), json.dumps(as_list(resources))


def permissions_agree():
    """The worker may do what the program calls for, and nothing else."""
    stack = template("cloudformation/roles.yaml")["Resources"]
    shared = stack["CommitPolicy"]["Properties"]["PolicyDocument"]
    of = lambda role: stack[role]["Properties"]["Policies"][0]["PolicyDocument"]
    policy = lambda name: stack[name]["Properties"]["PolicyDocument"]
    services = [policy("RekognitionPolicy"), policy("SecretsPolicy")]
    for name, document in [("CommitPolicy", shared), ("WorkerRole", of("WorkerRole")), ("ErasureRole", of("ErasureRole"))]:
        length = len(re.sub(r"\s", "", json.dumps(document)))
        if length > LONGEST_POLICY:
            yield f"{name} has {length} characters; IAM takes {LONGEST_POLICY}"
    called = set()
    for path in (ROOT / "worker/aws/src").rglob("*.rs"):
        # What setup makes is for an administrator; letters, walks and doctor are for an operator. Secrets are asked for without a client.
        if {"setup", "doctor"} & set(path.parts) or path.stem in {"connect", "doctor", "letters", "ssm", "walk"}:
            continue
        called |= set(re.findall(r"\bclient\s*\.\s*(\w+)\(\)", path.read_text())) - {"clone", "config"}
    yield from (f"{call}: nobody says what permission it needs" for call in sorted(called - PERMISSIONS.keys()))
    needed = {"ssm:GetParameter"}.union(*(PERMISSIONS.get(call, set()) for call in called))
    granted = set()
    for statement, actions, resources in [one for document in [shared, of("WorkerRole"), *services] for one in statements(document)]:
        if statement["Effect"] == "Allow":
            granted |= actions
            if "dynamodb:DeleteItem" in actions and "TransactWriteItems" not in json.dumps(statement.get("Condition")):
                yield f"{statement['Sid']}: a worker may remove rows without an event"
    yield from (f"a worker needs {action} and may not" for action in sorted(needed - granted))
    yield from (f"a worker may {action} and does not need it" for action in sorted(granted - needed))
    for statement, actions, resources in [*statements(shared), *statements(of("WorkerRole")), *statements(of("ErasureRole"))]:
        if statement["Effect"] != "Allow" or "LogTable" not in resources:
            continue
        if "dynamodb:DeleteItem" in actions:
            yield f"{statement['Sid']}: the log is append-only"
        condition = json.dumps(statement.get("Condition", {}))
        writes = actions & {"dynamodb:PutItem", "dynamodb:UpdateItem"}
        if writes and not ("TransactWriteItems" in condition) ^ ("LeadingKeys" in condition):
            yield f"{statement['Sid']}: the log is written in transactions, whose keys nobody can be sure of, or else by key"


def kustomizations_are_whole():
    for path in KUBERNETES.glob("*/kustomization.yaml"):
        named = documents(path)[0]
        files = named["resources"] + [file for made in named.get("configMapGenerator", []) for file in made["files"]]
        for file in files:
            if not (path.parent / file).exists():
                yield f"{path.relative_to(ROOT)}: there is no {file}"
        for other in set(path.parent.glob("*")) - {path}:
            if other.name not in files:
                yield f"{path.relative_to(ROOT)}: {other.name} is not part of it"


def image_agrees():
    dockerfile, workspace = source("docker/Dockerfile"), tomllib.loads(source("Cargo.toml"))["workspace"]["package"]
    number = lambda text: [int(part) for part in text.split(".")]
    if number(re.search(r"FROM rust:([\d.]+)", dockerfile)[1]) < number(workspace["rust-version"]):
        yield f"the image's compiler is older than {workspace['rust-version']}"
    for version in [re.search(r"ARG VERSION=(\S+)", dockerfile)[1], documents(KUBERNETES / "base/kustomization.yaml")[0]["images"][0]["newTag"]]:
        if version != workspace["version"]:
            yield f"version {version} is not {workspace['version']}"
    users = set(re.findall(r"^USER (\S+)", dockerfile, re.M)) | {ecs()[0]["User"]}
    context = deployment()["securityContext"]
    users.add(f"{context['runAsUser']}:{context['runAsGroup']}")
    if len(users) != 1 or "0:0" in users:
        yield f"who runs it differs: {sorted(users)}"
    features = tomllib.loads(source("worker/Cargo.toml")).get("features")
    for feature in re.findall(r"--features (\w+)", dockerfile):
        if features is not None and feature not in features:
            yield f"the worker has no feature {feature}"
    emulator = re.search(r'PACKAGE: &str = "([^"]+)"', source("tests/src/emulator.rs"))[1]
    if emulator not in source("docker/emulator.Dockerfile"):
        yield f"the tests use {emulator}, the compose file another"


def waiting_agrees():
    """Whoever may take work may take what waits beside it, where a FIFO queue makes that necessary."""
    stack = template("cloudformation/roles.yaml")["Resources"]
    of = lambda role: stack[role]["Properties"]["Policies"][0]["PolicyDocument"]
    documents = [stack["CommitPolicy"]["Properties"]["PolicyDocument"], of("WorkerRole"), stack["OperatorPolicy"]["Properties"]["PolicyDocument"]]
    for document in documents:
        for statement, actions, resources in statements(document):
            if "${Queue}" in resources and actions != {"sqs:SendMessage"} and "${WaitingQueue}" not in resources:
                yield f"{statement['Sid']}: nothing is said of the queue in which messages wait"
    conditional = {entry["Fn::If"][1]["Name"]: "" for entry in ecs()[0]["Environment"] if "Fn::If" in entry}
    yield from (f"docker/ecs: {what}" for what in with_environment(conditional)[1])
    if "SPARKS_AWS_WAITING_QUEUE" not in conditional:
        yield "docker/ecs: a worker is not told in which queue messages wait"


def documents_name_what_is_there():
    for name in set(re.findall(r"\b(?:docker|config)/[\w./-]*\w", source("docker/README.md"))):
        if not (ROOT / name).exists():
            yield f"docker/README.md: there is no {name}"
    for path in DOCKER.rglob("*.yaml"):
        # Comments are broken into lines.
        text = re.sub(r"\n\s*# ", " ", path.read_text())
        for document, heading in re.findall(r'(\w+\.md), "([^"]+)"', text):
            if f"## {heading}\n" not in source(document):
                yield f"{path.relative_to(ROOT)}: {document} has no {heading!r}"


CHECKS = [
    ("settings agree", settings_agree),
    ("names agree", names_agree),
    ("drains agree", drains_agree),
    ("resources agree", resources_agree),
    ("probes agree", probes_agree),
    ("scaling agrees", scaling_agrees),
    ("tables and queues are as `sparks setup` makes them", tables_agree),
    ("notifications are as `sparks setup` makes them", notifications_agree),
    ("permissions are those that the program needs", permissions_agree),
    ("what waits is thought of", waiting_agrees),
    ("kustomizations are whole", kustomizations_are_whole),
    ("the image agrees", image_agrees),
    ("documents name what is there", documents_name_what_is_there),
]
