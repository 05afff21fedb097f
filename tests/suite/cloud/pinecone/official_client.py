"""Runs an action of Pinecone's official client on an index and prints the results as JSON."""

import json
import os
import sys

from pinecone import Pinecone


def index_at(host, key):
    return Pinecone(api_key=key).Index(host=host)


def failure(call):
    """Return the status, message and type of the error that the call raises."""
    try:
        call()
    except Exception as error:
        status = getattr(error, "status", None) or getattr(error, "status_code", None)
        return {"status": status, "message": str(error), "kind": type(error).__name__}
    return {"status": 200, "message": "", "kind": ""}


def pages(listed):
    """Return the number of IDs on each page."""
    return [len(list(getattr(page, "vectors", page))) for page in listed]


def tour(host, key):
    index = index_at(host, key)
    dimension = index.describe_index_stats().dimension
    space = "n s"

    def values(n):
        return [1.0] + [n / 1000.0] + [0.0] * (dimension - 2)

    vectors = [{"id": f"a#{n:03}", "values": values(n), "metadata": {"n": n, "kind": "x"}} for n in range(250)]
    seen = {}
    seen["upserted"] = sum(
        index.upsert(vectors=vectors[at : at + 100], namespace=space).upserted_count for at in range(0, 250, 100)
    )
    found = index.query(vector=values(1), top_k=1, namespace=space, include_metadata=True, include_values=True)
    seen["matches"] = [[match.id, round(match.score, 6), dict(match.metadata)] for match in found.matches]
    seen["values"] = list(found.matches[0].values)
    seen["by_id"] = index.query(id="a#001", top_k=1, namespace=space).matches[0].id
    fetched = index.fetch(ids=["a#001", "a#002", "nothing"], namespace=space)
    seen["fetched"] = {name: dict(vector.metadata) for name, vector in fetched.vectors.items()}
    seen["pages"] = pages(index.list(prefix="a#", namespace=space))
    page = index.list_paginated(prefix="a#", limit=30, namespace=space)
    seen["page"] = [len(page.vectors), bool(page.pagination and page.pagination.next)]
    index.update(id="a#001", set_metadata={"kind": "y"}, namespace=space)
    seen["updated"] = dict(index.fetch(ids=["a#001"], namespace=space).vectors["a#001"].metadata)
    index.delete(ids=["a#001", "a#002", "nothing"], namespace=space)
    seen["left"] = sum(pages(index.list(prefix="a#", namespace=space)))
    stats = index.describe_index_stats()
    counts = {name: summary.vector_count for name, summary in stats.namespaces.items()}
    seen["stats"] = {
        "namespaces": counts,
        "dimension": stats.dimension,
        "metric": stats.metric,
        "total": stats.total_vector_count,
        "kind": stats.vector_type,
    }
    index.delete(delete_all=True, namespace=space)
    seen["emptied"] = index.describe_index_stats().total_vector_count
    odd = [{"id": "a", "values": values(1), "metadata": {"deep": {"er": 1}}}]
    seen["errors"] = {
        "dimension": failure(lambda: index.upsert(vectors=[{"id": "a", "values": [1.0, 2.0, 3.0]}], namespace=space)),
        "namespace": failure(lambda: index.delete(ids=["a"], namespace="missing")),
        "metadata": failure(lambda: index.upsert(vectors=odd, namespace=space)),
        "key": failure(lambda: index_at(host, "pcsk_other").describe_index_stats()),
    }
    return seen


def query(host, key, space, probe):
    index = index_at(host, key)
    found = index.query(vector=json.loads(probe), top_k=100, namespace=space, include_metadata=True)
    matches = [{"id": match.id, "score": match.score, "metadata": dict(match.metadata)} for match in found.matches]
    nearest = matches[0]["id"]
    return {"matches": matches, "values": list(index.fetch(ids=[nearest], namespace=space).vectors[nearest].values)}


def copy(host, key, space, old, new):
    """Copy the vectors with an ID prefix to another ID prefix and person."""
    index = index_at(host, key)
    names = [item.id for item in index.list_paginated(prefix=old, namespace=space).vectors]
    copies = []
    for name, vector in index.fetch(ids=names, namespace=space).vectors.items():
        metadata = {**vector.metadata, "person": new.rstrip("#")}
        copies.append({"id": name.replace(old, new), "values": list(vector.values), "metadata": metadata})
    return {"copied": index.upsert(vectors=copies, namespace=space).upserted_count}


def main():
    host, action, *args = sys.argv[1:]
    print(json.dumps({"tour": tour, "query": query, "copy": copy}[action](host, os.environ["PINECONE_API_KEY"], *args)))


main()
