"""Checks that the deployment files agree with the settings and with the program. Used by `docker/lint`.

Each check is a generator of findings; a check without findings has passed.
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

# Seconds after the grace period in which a worker releases the messages in flight.
RELEASE_SECONDS = 10
# Memory of the worker process in MiB: models, gallery, encoded variants.
WORKER_MEMORY_MIB = 512
# Maximum number of characters of an IAM policy, without white space.
MAX_POLICY_LENGTH = 6144
# Environment variables that are not settings.
OTHER_VARIABLES = {"SPARKS_CONFIG", "SPARKS_LOG", "SPARKS_LOG_FORMAT"}
# Settings that may differ from config/aws.toml.
MAY_DIFFER = {"jobs", "aws.region", "aws.endpoint"}

# Fields of KEDA resources that the manifests may use. KEDA's schemas are in no package index, and KEDA ignores unknown fields.
KEDA_FIELDS = {
    "a ScaledObject": {
        "advanced", "cooldownPeriod", "fallback", "maxReplicaCount", "minReplicaCount", "pollingInterval", "scaleTargetRef", "triggers",
    },
    "a trigger": {"authenticationRef", "metadata", "metricType", "name", "type"},
    "an SQS trigger": {
        "activationQueueLength", "awsEndpoint", "awsRegion", "queueLength", "queueURL", "scaleOnDelayed", "scaleOnInFlight",
    },
}

# Permissions of each call of the AWS SDK. A call that is missing here is a finding.
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


def read(path):
    return (ROOT / path).read_text()


def load_template(path):
    return cfn_yaml.load(str(DOCKER / path))


def load_documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def has_builtin_kinds(path):
    """Returns whether the file contains only resources of Kubernetes itself, and none of KEDA or Kustomize."""
    return not any(re.match(r"keda\.sh|kustomize", document["apiVersion"]) for document in load_documents(path))


def flatten(settings, prefix=""):
    flat = {}
    for name, value in settings.items():
        is_table = isinstance(value, dict)
        flat.update(flatten(value, f"{prefix}{name}.") if is_table else {f"{prefix}{name}": value})
    return flat


def load_settings(*files):
    """Returns the settings of these files over the defaults, by key."""
    layers = {}
    for file in ["config/default.toml", *files]:
        layers.update(flatten(tomllib.loads(read(file))))
    return layers


CLOUD = load_settings("config/aws.toml")


def with_environment(variables):
    """Returns the settings of config/aws.toml with these environment variables, and the findings about them."""
    found, findings = dict(CLOUD), []
    names = {"SPARKS_" + key.upper().replace(".", "_"): key for key in found}
    for name, value in variables.items():
        if name in names:
            known = found[names[name]]
            found[names[name]] = type(known)(value)
        elif name.startswith("SPARKS_") and name not in OTHER_VARIABLES:
            findings.append(f"{name} is not a setting")
    return found, findings


def compare_settings(where, found):
    for key, value in found.items():
        if key not in MAY_DIFFER and value != CLOUD.get(key):
            yield f"{where}: {key} is {value!r}, in config/aws.toml {CLOUD.get(key)!r}"
    for key in CLOUD.keys() - found.keys():
        yield f"{where}: {key} is missing"


def parameter_defaults(path):
    return {name: parameter.get("Default") for name, parameter in load_template(path)["Parameters"].items()}


def ecs_worker():
    """Returns the worker's container, its task, and its environment with parameters resolved to their defaults."""
    stack, defaults = load_template("ecs/service.yaml"), parameter_defaults("ecs/service.yaml")
    task = stack["Resources"]["Worker"]["Properties"]
    container = task["ContainerDefinitions"][0]
    resolve = lambda value: defaults[value["Ref"]] if isinstance(value, dict) else value
    # Conditional entries are absent with the default parameters.
    unconditional = [entry for entry in container["Environment"] if "Fn::If" not in entry]
    return container, task, {entry["Name"]: resolve(entry["Value"]) for entry in unconditional}


def kubernetes_pod():
    return load_documents(KUBERNETES / "base/deployment.yaml")[0]["spec"]["template"]["spec"]


def compose_services():
    return yaml.safe_load(read("docker/compose.yaml"))["services"]


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)\s*(\w*)", str(text)).groups()
    return int(number) * {"Gi": 1024, "g": 1024, "Mi": 1, "m": 1, "": 1}[unit]


def settings_agree():
    yield from compare_settings("docker/kubernetes", load_settings("docker/kubernetes/base/sparks.toml"))
    for where, variables in [("docker/ecs", ecs_worker()[2]), ("docker/compose.yaml", compose_services()["worker"]["environment"])]:
        found, findings = with_environment(variables)
        yield from (f"{where}: {finding}" for finding in findings)
        yield from compare_settings(where, found)
        if variables.get("SPARKS_CONFIG") not in read("docker/Dockerfile"):
            yield f"{where}: SPARKS_CONFIG is not a file of the image"


def parameters_agree():
    """Checks parameters of templates whose description names a setting in parentheses."""
    for path in ["cloudformation/resources.yaml", "cloudformation/roles.yaml", "ecs/service.yaml"]:
        for name, parameter in load_template(path)["Parameters"].items():
            setting = re.search(r"\(([a-z_.]+)\)", parameter.get("Description", ""))
            if setting and parameter.get("Default") != CLOUD.get(setting[1]):
                yield f"docker/{path}: {name} is {parameter.get('Default')!r}, {setting[1]} is {CLOUD.get(setting[1])!r}"


def grace_periods_agree():
    periods = {
        "terminationGracePeriodSeconds": kubernetes_pod()["terminationGracePeriodSeconds"],
        "StopTimeout": ecs_worker()[0]["StopTimeout"],
        "stop_grace_period": int(compose_services()["worker"]["stop_grace_period"].removesuffix("s")),
    }
    needed = CLOUD["run.grace_seconds"] + RELEASE_SECONDS
    for name, period in periods.items():
        if period < needed:
            yield f"{name} is {period}, less than {needed}: run.grace_seconds and {RELEASE_SECONDS} s to release messages"


def resources_agree():
    container, task, variables = ecs_worker()
    pod = kubernetes_pod()["containers"][0]["resources"]
    sizes = {
        "docker/kubernetes": (load_settings("docker/kubernetes/base/sparks.toml")["jobs"], pod["limits"]["memory"]),
        "docker/ecs": (int(variables["SPARKS_JOBS"]), task["Memory"]),
        "docker/compose.yaml": (int(compose_services()["worker"]["environment"]["SPARKS_JOBS"]), compose_services()["worker"]["mem_limit"]),
    }
    for where, (jobs, memory) in sizes.items():
        needed = jobs * CLOUD["limits.max_memory_mib"] + WORKER_MEMORY_MIB
        if mebibytes(memory) < needed:
            yield f"{where}: {memory} of memory is less than the {needed} MiB that {jobs} concurrent photos may need"
    for where, cores, jobs in [
        ("docker/kubernetes", int(pod["requests"]["cpu"]), sizes["docker/kubernetes"][0]),
        ("docker/ecs", int(task["Cpu"]) // 1024, sizes["docker/ecs"][0]),
    ]:
        if cores != jobs:
            yield f"{where}: {cores} cores for {jobs} concurrent photos"


def probes_agree():
    port = CLOUD["run.listen"].rpartition(":")[2]
    container = kubernetes_pod()["containers"][0]
    if [str(entry["containerPort"]) for entry in container["ports"]] != [port]:
        yield f"docker/kubernetes: the container port is not that of run.listen, {port}"
    probes = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
    probes |= {"HealthCheck": ecs_worker()[0]["HealthCheck"]["Command"][-1], "HEALTHCHECK": read("docker/Dockerfile")}
    for where, text in probes.items():
        paths = re.findall(r"/(?:healthz|readyz)\b", text)
        if not paths or any(f'"{path}"' not in read("worker/src/telemetry/http.rs") for path in paths):
            yield f"{where}: requests a path that the worker does not serve"
    for where in ["HealthCheck", "HEALTHCHECK"]:
        if f"127.0.0.1:{port}/" not in probes[where]:
            yield f"{where}: does not use the port of run.listen, {port}"


def scaling_agrees():
    scaled_object = load_documents(KUBERNETES / "keda/scaled-object.yaml")[0]["spec"]
    stack = load_template("ecs/service.yaml")["Resources"]
    target = stack["ByBacklog"]["Properties"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    autoscaler = load_documents(KUBERNETES / "hpa/autoscaler.yaml")[0]["spec"]
    name = load_documents(KUBERNETES / "base/deployment.yaml")[0]["metadata"]["name"]
    queue = scaled_object["triggers"][0]["metadata"]
    pod = load_settings("docker/kubernetes/base/sparks.toml")
    equal = {
        "queue": (queue["queueURL"], CLOUD["aws.queue"]),
        "region": (queue["awsRegion"], pod["aws.region"]),
        "messages per worker": (int(queue["queueLength"]), target),
        "maximum number of workers, KEDA and HPA": (scaled_object["maxReplicaCount"], autoscaler["maxReplicas"]),
        "maximum number of workers, KEDA and ECS": (scaled_object["maxReplicaCount"], parameter_defaults("ecs/service.yaml")["MaxWorkers"]),
        "target of KEDA": (scaled_object["scaleTargetRef"]["name"], name),
        "target of the autoscaler": (autoscaler["scaleTargetRef"]["name"], name),
    }
    for what, (one, other) in equal.items():
        if one != other:
            yield f"{what}: {one!r} differs from {other!r}"
    for (kind, fields), found in zip(KEDA_FIELDS.items(), [scaled_object, scaled_object["triggers"][0], queue]):
        yield from (f"{kind} has no field {name}" for name in sorted(found.keys() - fields))


def tables_agree():
    """Compares tables and queues with those that worker/aws/src/setup creates."""
    program = read("worker/aws/src/setup/tables.rs")
    found = load_template("cloudformation/resources.yaml")["Resources"]
    platform, log, faces = (found[name]["Properties"] for name in ["PlatformTable", "Log", "Faces"])
    keys = lambda schema: [key["AttributeName"] for key in schema["KeySchema"]]
    for table in (platform, log, faces):
        if keys(table) != ["PK", "SK"]:
            yield f"{table['TableName']}: keys are {keys(table)}"
    expected = dict(re.findall(r'Index \{ name: "([^"]+)", attribute: "([^"]+)" \}', program))
    expected = {name: [attribute, "PK"] for name, attribute in expected.items()}
    expected[re.search(r'BY_LIMIT: &str = "([^"]+)"', program)[1]] = ["PK", "limit"]
    indexes = [*platform["GlobalSecondaryIndexes"], *platform["LocalSecondaryIndexes"]]
    if {index["IndexName"]: keys(index) for index in indexes} != expected:
        yield f"the platform's table does not have the indexes {expected}"
    if any(index["Projection"]["ProjectionType"] != "ALL" for index in indexes):
        yield "an index does not project all attributes"
    if platform["TimeToLiveSpecification"]["AttributeName"] not in re.findall(r'attribute_name\("(\w+)"\)', program):
        yield "the TTL attribute differs"
    if not (log["DeletionProtectionEnabled"] and log["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]):
        yield "the event log lacks deletion protection or point-in-time recovery"
    if faces["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]:
        yield "erased signatures could be restored by point-in-time recovery"
    retention = {found[queue]["Properties"]["MessageRetentionPeriod"] for queue in ["Work", "DeadLetters"]}
    if retention != {int(re.search(r'MAX_RETENTION_SECONDS: &str = "(\d+)"', read("worker/aws/src/setup/queues.rs"))[1])}:
        yield f"the retention periods of the queues are {retention} seconds"


def notifications_agree():
    """Compares the bucket's notifications with pipeline/domain/src/object_keys.rs and worker/aws/src/setup/bucket.rs."""
    keys = read("pipeline/domain/src/object_keys.rs")
    prefixes = re.findall(r'"([^"]+)"', re.search(r"ORIGINALS: .*", keys)[0] + re.search(r"PROFILES: .*", keys)[0])
    events = set(re.findall(r'Event::from\("([^"]+)"\)', read("worker/aws/src/setup/bucket.rs")))
    expected = {(event, prefix) for event in events for prefix in prefixes}
    bucket = load_template("cloudformation/resources.yaml")["Resources"]["Photos"]["Properties"]
    configurations = bucket["NotificationConfiguration"]["TopicConfigurations"]
    found = {(entry["Event"], rule["Value"]) for entry in configurations for rule in entry["Filter"]["S3Key"]["Rules"]}
    if found != expected:
        yield f"only the template or only `sparks setup` has the notifications {sorted(found ^ expected)}"


def statements(document):
    for statement in document["Statement"]:
        actions, resources = statement["Action"], statement["Resource"]
        as_list = lambda value: value if isinstance(value, list) else [value]
        yield statement, set(as_list(actions)), json.dumps(as_list(resources))


def permissions_agree():
    """Checks that the worker's role grants the permissions of the calls in the program, and no others."""
    stack = load_template("cloudformation/roles.yaml")["Resources"]
    shared = stack["CommitPolicy"]["Properties"]["PolicyDocument"]
    role_policy = lambda role: stack[role]["Properties"]["Policies"][0]["PolicyDocument"]
    policy = lambda name: stack[name]["Properties"]["PolicyDocument"]
    services = [policy("RekognitionPolicy"), policy("SecretsPolicy")]
    worker, erasure = role_policy("WorkerRole"), role_policy("ErasureRole")
    for name, document in [("CommitPolicy", shared), ("WorkerRole", worker), ("ErasureRole", erasure)]:
        length = len(re.sub(r"\s", "", json.dumps(document)))
        if length > MAX_POLICY_LENGTH:
            yield f"{name} has {length} characters; the maximum of IAM is {MAX_POLICY_LENGTH}"
    called = set()
    for path in (ROOT / "worker/aws/src").rglob("*.rs"):
        # Setup is for administrators; dead letters, scans and doctor are for operators. ssm.rs calls without an SDK client.
        if {"setup", "doctor"} & set(path.parts) or path.stem in {"connect", "doctor", "dead_letters", "ssm", "scan"}:
            continue
        called |= set(re.findall(r"\bclient\s*\.\s*(\w+)\(\)", path.read_text())) - {"clone", "config"}
    yield from (f"{call}: PERMISSIONS in docker/agreement.py lacks this call" for call in sorted(called - PERMISSIONS.keys()))
    needed = {"ssm:GetParameter"}.union(*(PERMISSIONS.get(call, set()) for call in called))
    granted = set()
    for statement, actions, _ in [entry for document in [shared, worker, *services] for entry in statements(document)]:
        if statement["Effect"] == "Allow":
            granted |= actions
            if "dynamodb:DeleteItem" in actions and "TransactWriteItems" not in json.dumps(statement.get("Condition")):
                yield f"{statement['Sid']}: workers could delete items outside a transaction"
    yield from (f"the worker's role lacks {action}" for action in sorted(needed - granted))
    yield from (f"the worker's role grants {action}, which the program does not call" for action in sorted(granted - needed))
    for statement, actions, resources in [*statements(shared), *statements(worker), *statements(erasure)]:
        if statement["Effect"] != "Allow" or "LogTable" not in resources:
            continue
        if "dynamodb:DeleteItem" in actions:
            yield f"{statement['Sid']}: grants deletion from the event log, which is append-only"
        condition = json.dumps(statement.get("Condition", {}))
        writes = actions & {"dynamodb:PutItem", "dynamodb:UpdateItem"}
        if writes and not ("TransactWriteItems" in condition) ^ ("LeadingKeys" in condition):
            yield f"{statement['Sid']}: writes to the event log must be limited either to transactions or by leading keys"


def kustomizations_are_complete():
    for path in KUBERNETES.glob("*/kustomization.yaml"):
        kustomization = load_documents(path)[0]
        generators = kustomization.get("configMapGenerator", [])
        files = kustomization["resources"] + [file for generator in generators for file in generator["files"]]
        for file in files:
            if not (path.parent / file).exists():
                yield f"{path.relative_to(ROOT)}: {file} does not exist"
        for other in set(path.parent.glob("*")) - {path}:
            if other.name not in files:
                yield f"{path.relative_to(ROOT)}: does not list {other.name}"


def image_agrees():
    dockerfile, workspace = read("docker/Dockerfile"), tomllib.loads(read("Cargo.toml"))["workspace"]["package"]
    parse = lambda version: [int(part) for part in version.split(".")]
    if parse(re.search(r"FROM rust:([\d.]+)", dockerfile)[1]) < parse(workspace["rust-version"]):
        yield f"the Rust version of the image is older than {workspace['rust-version']}"
    kustomization = load_documents(KUBERNETES / "base/kustomization.yaml")[0]
    for version in [re.search(r"ARG VERSION=(\S+)", dockerfile)[1], kustomization["images"][0]["newTag"]]:
        if version != workspace["version"]:
            yield f"version {version} is not {workspace['version']}"
    users = set(re.findall(r"^USER (\S+)", dockerfile, re.M)) | {ecs_worker()[0]["User"]}
    context = kubernetes_pod()["securityContext"]
    users.add(f"{context['runAsUser']}:{context['runAsGroup']}")
    if len(users) != 1 or "0:0" in users:
        yield f"the users differ or are root: {sorted(users)}"
    features = tomllib.loads(read("worker/Cargo.toml")).get("features")
    for feature in re.findall(r"--features (\w+)", dockerfile):
        if features is not None and feature not in features:
            yield f"the worker has no feature {feature}"
    emulator = re.search(r'PACKAGE: &str = "([^"]+)"', read("tests/src/emulator.rs"))[1]
    if emulator not in read("docker/emulator.Dockerfile"):
        yield f"the tests use {emulator}, docker/emulator.Dockerfile another version"


def waiting_queue_agrees():
    """Checks that permissions on the work queue include the waiting queue, which a FIFO work queue needs."""
    stack = load_template("cloudformation/roles.yaml")["Resources"]
    role_policy = lambda role: stack[role]["Properties"]["Policies"][0]["PolicyDocument"]
    policy = lambda name: stack[name]["Properties"]["PolicyDocument"]
    for document in [policy("CommitPolicy"), role_policy("WorkerRole"), policy("OperatorPolicy")]:
        for statement, actions, resources in statements(document):
            if "${Queue}" in resources and actions != {"sqs:SendMessage"} and "${WaitingQueue}" not in resources:
                yield f"{statement['Sid']}: lacks the waiting queue"
    conditional = {entry["Fn::If"][1]["Name"]: "" for entry in ecs_worker()[0]["Environment"] if "Fn::If" in entry}
    yield from (f"docker/ecs: {finding}" for finding in with_environment(conditional)[1])
    if "SPARKS_AWS_WAITING_QUEUE" not in conditional:
        yield "docker/ecs: the worker lacks SPARKS_AWS_WAITING_QUEUE"


def references_exist():
    """Checks paths in docker/README.md, and references of the form `FILE.md, "Heading"` in comments of manifests."""
    for name in set(re.findall(r"\b(?:docker|config)/[\w./-]*\w", read("docker/README.md"))):
        if not (ROOT / name).exists():
            yield f"docker/README.md: {name} does not exist"
    for path in DOCKER.rglob("*.yaml"):
        # A reference may continue on the next line of the comment.
        text = re.sub(r"\n\s*# ", " ", path.read_text())
        for document, heading in re.findall(r'([\w/]+\.md), "([^"]+)"', text):
            if f"## {heading}\n" not in read(document):
                yield f"{path.relative_to(ROOT)}: {document} has no heading {heading!r}"


CHECKS = [
    ("settings agree", settings_agree),
    ("template parameters agree", parameters_agree),
    ("grace periods agree", grace_periods_agree),
    ("memory and cores agree", resources_agree),
    ("probes agree", probes_agree),
    ("scaling agrees", scaling_agrees),
    ("tables and queues equal those of `sparks setup`", tables_agree),
    ("notifications equal those of `sparks setup`", notifications_agree),
    ("permissions equal those that the program needs", permissions_agree),
    ("permissions include the waiting queue", waiting_queue_agrees),
    ("kustomizations are complete", kustomizations_are_complete),
    ("the image agrees", image_agrees),
    ("references exist", references_exist),
]
