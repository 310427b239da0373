"""`tdbg profile` of what the profilers of today write: ONNX Runtime, and torch where it is installed."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


def scopes(document):
    return {scope["path"]: scope for scope in document["scopes"]}


def test_onnxruntime(tdbg, tmp_path, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    weights = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"h{i - 1}", "w"], [f"m{i}"], f"layers.{i}/MatMul") for i in range(3)]
    nodes += [helper.make_node("Tanh", [f"m{i}"], [f"h{i}"], f"layers.{i}/Tanh") for i in range(3)]
    nodes = [node for pair in zip(nodes[:3], nodes[3:]) for node in pair]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
                              [helper.make_tensor_value_info("h2", TensorProto.FLOAT, [8, 64])], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, "m.onnx")
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    session = onnxruntime.InferenceSession("m.onnx", options, providers=["CPUExecutionProvider"])
    for _ in range(7):
        session.run(None, {"x": np.ones((8, 64), np.float32)})
    path = tmp_path / session.end_profiling()
    document = tdbg.json("profile", path)
    events = [event for event in json.loads(path.read_text()) if event.get("ph") == "X"]
    assert document["steps"]["count"] == 7 and document["cut"] is False and document["skipped_events"] == 0
    found = scopes(document)
    tail = "model_run/SequentialExecutor::Execute/"
    assert found["model_run"]["calls"] == 7
    for i in range(3):
        for kind in ("MatMul", "Tanh"):
            name = f"layers.{i}/{kind}"
            spent = sum(event["dur"] for event in events if event["name"] == f"{name}_kernel_time")
            assert found[tail + name]["calls"] == 7 and abs(found[tail + name]["total_ns"] - spent * 1000) <= 7000
    assert sum(scope["self_ns"] for scope in document["scopes"]) == document["thread_ns"]


def test_kineto(tdbg, tmp_path):
    torch = pytest.importorskip("torch")
    profiler = torch.profiler
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
    path = tmp_path / "trace.json"
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                          schedule=profiler.schedule(wait=0, warmup=1, active=6, repeat=1),
                          on_trace_ready=lambda p: p.export_chrome_trace(str(path))) as profile:
        for _ in range(7):
            model(torch.ones(8, 64)).sum().backward()
            profile.step()
    document = tdbg.json("profile", path)
    found = scopes(document)
    assert document["steps"]["count"] == 6 and document["skipped_events"] == 0 and document["peak_bytes"] > 0
    addmm = found["ProfilerStep/aten::linear/aten::addmm"]
    assert addmm["calls"] == 18 and addmm["flops"] == 18 * 2 * 8 * 64 * 64 and addmm["per_step"]["count"] == 6
    by_name = {average.key: average for average in profile.key_averages()}
    calls = sum(scope["calls"] for scope in document["scopes"] if scope["name"] == "aten::addmm")
    assert calls == by_name["aten::addmm"].count
