"""The HTTP API of the application tdbg replaces: every route, good and bad, its numbers checked with torch.

Comparisons are posted as its clients do, as forms with files; what comes back is held against what torch computes from
the tensors in double precision.
"""
import functools
import io
import json
import math
import os
import pathlib
import tarfile
import zipfile

import pytest
import torch

STAGES = ["post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final", "post_attn", "scaling",
          "sliding", "post_attn_pre_resid", "pre_mlp", "post_mlp"]


def saved(value):
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def zipped(dumps):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in dumps.items():
            archive.writestr(name, saved(value))
    return out.getvalue()


def tarred(dumps):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, value in dumps.items():
            data = saved(value)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def form(files, **fields):
    """A multipart/form-data body and its type. files: field -> (file name, bytes)."""
    edge = "----edge7d1f"
    parts = [f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
             for name, value in fields.items()]
    for name, (file_name, data) in files.items():
        head = f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n' \
               "Content-Type: application/octet-stream\r\n\r\n"
        parts += [head.encode(), data, b"\r\n"]
    return b"".join(parts) + f"--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


class Browser:
    """A client of the original API; keeps its cookie unless told not to."""

    def __init__(self, server, cookies=True):
        self.server, self.cookies, self.cookie = server, cookies, None

    def send(self, method, path, body=None, content_type=None):
        headers = {"Content-Type": content_type} if content_type else {}
        if self.cookie:
            headers["Cookie"] = self.cookie
        connection = self.server.connect()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if self.cookies and answer.getheader("Set-Cookie"):
            self.cookie = answer.getheader("Set-Cookie").split(";")[0]
        connection.close()
        return answer.status, json.loads(text)

    def post(self, path, status=200, **body):
        got, answer = self.send("POST", path, json.dumps(body), "application/json")
        assert got == status, answer
        return answer

    def fails(self, path, **body):
        """The error of a request that must not succeed."""
        got, answer = self.send("POST", path, json.dumps(body), "application/json")
        assert 400 <= got < 500, answer
        return answer["error"]

    def upload(self, status=200, mode=None, **files):
        fields = {"upload_mode": mode} if mode else {}
        got, answer = self.send("POST", "/upload", *form(files, **fields))
        assert got == status, answer
        return answer

    def values(self, index, indices=(), count=10, **more):
        return self.post("/get_tensor_values", match_index=index, dimension_indices=list(indices), count=count, **more)


def processor_time(server):
    """Seconds."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def browser(server):
    return Browser(server)


def noisy(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


@functools.lru_cache
def dumps_pair():
    """Two dumps of two layers: bfloat16, tensor parallel, permuted heads, scalars, NaN, and one stage too few."""
    a, b = {}, {}
    for layer in range(2):
        hidden = noisy(76, 128, seed=layer)
        query = noisy(8, 76, 64, seed=10 + layer)
        shards = noisy(8, 64, 76, 64, seed=20 + layer)
        a[f"{layer}_post_ln_pre_attn.pth"] = hidden
        b[f"{layer}_post_ln_pre_attn.pth"] = (hidden.float() + 0.01 * noisy(76, 128, dtype=torch.float32, seed=5)).to(torch.bfloat16)
        a[f"{layer}_query.pth"] = query
        b[f"{layer}_query.pth"] = query.permute(1, 0, 2).contiguous()
        a[f"{layer}_key.pth"] = shards
        b[f"{layer}_key.pth"] = shards[:1] + torch.tensor(0.5, dtype=torch.bfloat16)
        a[f"{layer}_sliding.pth"] = 128
        b[f"{layer}_sliding.pth"] = 128 if layer == 0 else 64
    broken = noisy(4, 6, dtype=torch.float32, seed=3)
    a["1_value.pth"] = broken
    b["1_value.pth"] = broken.clone()
    b["1_value.pth"][1, 2] = math.nan
    b["1_value.pth"][2, 0] = math.inf
    b["1_value.pth"][3, 5] = -math.inf
    a["1_pre_mlp.pth"] = noisy(12, seed=4)
    b["1_post_mlp.pth"] = noisy(13, seed=4)
    return a, b


@functools.lru_cache
def archives():
    a, b = dumps_pair()
    return {"model1": ("a.zip", zipped(a)), "model2": ("b.tar.gz", tarred(b))}


@pytest.fixture
def compared(browser):
    """A browser that has compared the two, the answer, and both dumps."""
    return browser, browser.upload(**archives()), *dumps_pair()


def place(answer, layer, stage):
    for i, match in enumerate(answer["matches"]):
        if (match["layer_num"], match["stage"]) == (layer, stage):
            assert match["match_index"] == i
            return i
    raise AssertionError(f"no {layer} {stage}")


def doubles(value):
    return value.double() if torch.is_tensor(value) else torch.tensor(float(value), dtype=torch.float64)


def assert_close(measured, expected):
    assert measured == pytest.approx(expected, rel=1e-9, abs=1e-12)


def assert_statistics(data, tensor):
    values = doubles(tensor)
    values = values[torch.isfinite(values)]
    assert_close(data["mean"], values.mean().item())
    assert_close(data["std"], values.std().item() if values.numel() > 1 else 0)
    assert_close(data["min"], values.min().item())
    assert_close(data["max"], values.max().item())


def assert_difference(stats, a, b):
    """a and b are already lined up."""
    a, b = doubles(a).flatten(), doubles(b).flatten()
    both = torch.isfinite(a) & torch.isfinite(b)
    a, b = a[both], b[both]
    d = (a - b).abs()
    assert_close(stats["abs_diff_mean"], d.mean().item())
    assert_close(stats["abs_diff_max"], d.max().item())
    assert_close(stats["rel_diff_mean"], (d / (a.abs() + 1e-8)).mean().item())
    assert_close(stats["mse"], (d * d).mean().item())
    assert_close(stats["cosine_sim"], (a @ b / (a.norm() * b.norm())).item())


def plain(tensor):
    """As JSON shows it."""
    return ["nan" if math.isnan(v) else "inf" if v == math.inf else "-inf" if v == -math.inf else v
            for v in doubles(tensor).flatten().tolist()]


# --- upload ---------------------------------------------------------------------------------------------------------


def test_health(browser):
    status, answer = browser.send("GET", "/health")
    assert status == 200
    assert answer["status"] == "healthy" and answer["service"] and answer["version"]


def test_upload_of_two_archives(compared):
    _, answer, a, b = compared
    assert (answer["model1_files"], answer["model2_files"]) == (len(a), len(b))
    assert answer["upload_mode"] == "dual_archive"
    places = [(m["layer_num"], STAGES.index(m["stage"])) for m in answer["matches"]]
    assert places == sorted(places) and len(places) == 11
    assert [m["match_index"] for m in answer["matches"]] == list(range(11))
    for match in answer["matches"]:
        assert match["stage_index"] == STAGES.index(match["stage"])
        assert match["stage_display"] == match["stage"].replace("_", " ").title()
        name = f"{match['layer_num']}_{match['stage']}.pth"
        assert match["model1_file"] == (name if name in a else None)
        assert match["model2_file"] == (name if name in b else None)


def test_statistics_of_each_side(compared):
    _, answer, a, b = compared
    for match in answer["matches"]:
        for side, dumps in (("model1", a), ("model2", b)):
            data, name = match[f"{side}_data"], match[f"{side}_file"]
            if name is None:
                assert data is None
                continue
            value = dumps[name]
            assert data["shape"] == (list(value.shape) if torch.is_tensor(value) else [])
            assert data["dtype"] == (str(value.dtype) if torch.is_tensor(value) else "torch.int64")
            assert_statistics(data, value)


def test_differences(compared):
    _, answer, a, b = compared
    for layer in range(2):
        def stats(stage):
            return answer["matches"][place(answer, layer, stage)]["diff_stats"]

        name = f"{layer}_post_ln_pre_attn.pth"
        assert_difference(stats("post_ln_pre_attn"), a[name], b[name])
        assert stats("post_ln_pre_attn")["reshaped"] is False
        name = f"{layer}_query.pth"  # permuted heads are the same values
        assert stats("query")["abs_diff_max"] == 0 and stats("query")["reshaped"] is True
        assert sorted(stats("query")["final_shape"]) == [8, 64, 76]
        assert stats("query")["original_shape1"] == [8, 76, 64] and stats("query")["original_shape2"] == [76, 8, 64]
        name = f"{layer}_key.pth"  # rank 0 of 8 against the only rank
        assert stats("key")["final_shape"] == [64, 76, 64]
        assert_difference(stats("key"), a[name][0], b[name][0])
        assert stats("sliding")["abs_diff_max"] == (0 if layer == 0 else 64)
        assert stats("sliding")["final_shape"] == []
    for match in answer["matches"]:
        if match["match_type"] == "both":
            assert match["diff_stats"]["shape_match"] is True
        else:
            assert match["diff_stats"] is None


def test_nan_is_neither_hidden_nor_counted(compared):
    _, answer, a, b = compared
    match = answer["matches"][place(answer, 1, "value")]
    assert_difference(match["diff_stats"], a["1_value.pth"], b["1_value.pth"])
    assert (match["model2_data"]["nan"], match["model2_data"]["inf"]) == (1, 2)
    assert match["verdict"] == "diverged"


def test_one_sided_matches(compared):
    browser, answer, a, b = compared
    first, second = place(answer, 1, "pre_mlp"), place(answer, 1, "post_mlp")
    assert answer["matches"][first]["match_type"] == "model1_only"
    assert answer["matches"][second]["match_type"] == "model2_only"
    values = browser.values(first, [2], 3, get_argmax=True)
    assert values["tensor1_values"] == plain(a["1_pre_mlp.pth"][2:5])
    assert values["tensor2_values"] is None and values["argmax_coordinates"] is None
    values = browser.values(second)
    assert values["tensor1_values"] is None and values["tensor2_values"] == plain(b["1_post_mlp.pth"][:10])
    shapes = browser.post("/get_tensor_shapes", match_index=second)
    assert shapes["tensor1_shape"] is None and shapes["tensor2_shape"] == [13]
    mapped = browser.post("/get_tensor_values_manual", match_index=second, tensor1_indices=[], tensor2_indices=[4], count=2)
    assert mapped["tensor1_values"] is None and mapped["tensor2_values"] == plain(b["1_post_mlp.pth"][4:6])
    assert mapped["summary_stats"] is None


def test_two_tensor_files(browser):
    a = {"w": noisy(4, 6, dtype=torch.float32), "bias": noisy(3, dtype=torch.float16), "extra": torch.ones(2)}
    b = {"bias": a["bias"], "w": a["w"] * 2}
    answer = browser.upload(model1=("one.pth", saved(a)), model2=("two.pt", saved(b)))
    assert answer["upload_mode"] == "dual_pth"
    assert (answer["model1_files"], answer["model2_files"]) == (3, 2)
    # Its page can show no one-sided match of two tensor files.
    assert {m["match_type"] for m in answer["matches"]} == {"dual_pth"}
    assert sorted(m["stage"] for m in answer["matches"]) == ["bias", "w"]
    for match in answer["matches"]:
        assert_difference(match["diff_stats"], a[match["stage"]], b[match["stage"]])
        values = browser.values(match["match_index"], count=2)
        assert values["tensor1_values"] == plain(a[match["stage"]])[:2]
        assert values["tensor2_values"] == plain(b[match["stage"]])[:2]


def test_two_single_tensors_are_a_pair_whatever_their_names(browser):
    a, b = noisy(4, 6), noisy(5, 7)
    answer = browser.upload(mode="dual_pth", model1=("left.pth", saved(a)), model2=("right.pth", saved(b)))
    [match] = answer["matches"]
    assert (match["stage"], match["stage_display"], match["layer_num"]) == ("left", "Left", 0)
    assert "[4, 6] and [5, 7]" in match["diff_stats"]["error"]
    assert "[4, 6] and [5, 7]" in browser.fails("/get_tensor_values", match_index=0)
    # By hand they can be looked at all the same.
    mapped = browser.post("/get_tensor_values_manual", match_index=0, tensor1_indices=[1, 2], tensor2_indices=[3, 3], count=4)
    assert mapped["tensor1_values"] == plain(a[1, 2:6]) and mapped["tensor2_values"] == plain(b[3, 3:7])


def test_scalars(browser):
    answer = browser.upload(model1=("a.pth", saved(128)), model2=("b.pth", saved(0.5)))
    [match] = answer["matches"]
    assert match["model1_data"]["shape"] == [] and match["model1_data"]["mean"] == 128
    assert match["diff_stats"]["abs_diff_max"] == 127.5
    values = browser.values(0, get_argmax=True)
    assert values == {"tensor1_values": [128], "tensor2_values": [0.5], "tensor_shape": [], "display_type": "scalar",
                      "argmax_index": None, "argmax_coordinates": None, "slice_info": "Scalar value"}
    assert browser.values(0, get_final_shape=True)["tensor_shape"] == []
    mapped = browser.post("/get_tensor_values_manual", match_index=0, tensor1_indices=[], tensor2_indices=[], count=3)
    assert (mapped["tensor1_values"], mapped["tensor1_slice_info"]) == ([128], "scalar")


def test_an_archive_against_a_file(browser):
    tensor = noisy(3, 5)
    answer = browser.upload(mode="mixed", model1=("a.zip", zipped({"0_query.pth": tensor})),
                            model2=("0_query.pth", saved(tensor)))
    assert answer["upload_mode"] == "mixed"
    [match] = answer["matches"]
    assert match["match_type"] == "both" and match["diff_stats"]["abs_diff_max"] == 0
    assert browser.upload(model1=("a.zip", zipped({"0_query.pth": tensor})),
                          model2=("0_query.pth", saved(tensor)))["upload_mode"] == "mixed"


def test_one_file_against_itself(browser):
    tensors = {"a": noisy(4, 6), "b": noisy(4, 6, seed=1), "c": noisy(5), "d": noisy(24, seed=2)}
    answer = browser.upload(single_file=("model.pth", saved(tensors)))
    assert answer["upload_mode"] == "single_file" and answer["model1_files"] == answer["model2_files"] == 4
    names = [(m["model1_file"], m["model2_file"]) for m in answer["matches"]]
    assert names == [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert {m["match_type"] for m in answer["matches"]} == {"self_comparison"}
    for i, (match, (x, y)) in enumerate(zip(answer["matches"], names)):
        assert match["match_index"] == i
        assert_statistics(match["model1_data"], tensors[x])
        assert_statistics(match["model2_data"], tensors[y])
        assert ("error" in match["diff_stats"]) == ("c" in (x, y))
    assert_difference(answer["matches"][0]["diff_stats"], tensors["a"], tensors["b"])
    values = browser.values(0, [3, 4], 10, get_argmax=True)
    assert values["tensor1_values"] == plain(tensors["a"][3, 4:]) and values["tensor2_values"] == plain(tensors["b"][3, 4:])
    worst = (tensors["a"].double() - tensors["b"].double()).abs().argmax().item()
    assert values["argmax_coordinates"] == [worst // 6, worst % 6]
    assert browser.post("/get_tensor_shapes", match_index=3)["tensor2_shape"] == [5]
    assert "do not line up" in browser.fails("/get_tensor_values", match_index=3)
    assert browser.fails("/get_tensor_values", match_index=6)
    assert browser.post("/manual_pair", model1_file="d", model2_file="a")["match"]["match_index"] == 2


def test_bad_uploads(browser, server):
    good = ("a.pth", saved(torch.ones(3)))
    assert browser.upload(400, model1=good)["error"]
    assert browser.upload(400)["error"]
    assert browser.upload(400, mode="dual_pth", single_file=good)["error"]
    assert browser.upload(400, mode="single_file", model1=good, model2=good)["error"]
    assert "upload_mode" in browser.upload(400, mode="nonsense", model1=good, model2=good)["error"]
    assert browser.upload(422, model1=good, model2=("b.pth", b"this is no tensor at all"))["error"]
    said = browser.upload(422, model1=("a.zip", b"PK\3\4broken"), model2=good)["error"]
    assert said.startswith("a.zip: ")
    # Nothing of what was refused stays.
    assert browser.send("GET", "/api/v1/comparisons")[1]["comparisons"] == []
    assert [path.name for path in (server.data / "uploads").iterdir()] == ["lock"]
    status, answer = browser.send("POST", "/upload", b"{}", "application/json")
    assert 400 <= status < 500 and answer["error"]


def test_nothing_to_look_at_yet(browser):
    assert browser.fails("/get_tensor_values", match_index=0)
    assert browser.fails("/reorder_matches", old_index=0, new_index=0)


# --- values ---------------------------------------------------------------------------------------------------------


def test_values_of_slices(compared):
    browser, answer, a, b = compared
    index = place(answer, 0, "key")
    x, y = a["0_key.pth"][0], b["0_key.pth"][0]
    values = browser.values(index, [5, 12, 40], 16)
    assert values["tensor1_values"] == plain(x[5, 12, 40:56]) and values["tensor2_values"] == plain(y[5, 12, 40:56])
    assert values["tensor_shape"] == [64, 76, 64]
    assert values["display_type"] == "3D tensor slice"
    assert values["slice_info"] == "dim0[5] × dim1[12] × dim2[40:56]"
    assert values["argmax_index"] is None and values["argmax_coordinates"] is None
    # Too few indices are zeros, too many are dropped, those out of range come back into it, the end is the end.
    assert browser.values(index, [], 4)["tensor1_values"] == plain(x[0, 0, :4])
    assert browser.values(index, [5, 12, 40, 9, 9], 1)["tensor1_values"] == plain(x[5, 12, 40])
    assert browser.values(index, [-3, 999, 60], 99)["tensor1_values"] == plain(x[0, 75, 60:])
    assert browser.values(index, [1, 1, 1], 0)["tensor1_values"] == []
    assert len(browser.post("/get_tensor_values", match_index=index)["tensor1_values"]) == 10


def test_values_of_one_dimension(browser):
    a, b = noisy(20), noisy(20, seed=1)
    browser.upload(model1=("a.pth", saved(a)), model2=("b.pth", saved(b)))
    values = browser.values(0, [17], 10, get_argmax=True)
    assert values["tensor1_values"] == plain(a[17:]) and values["tensor2_values"] == plain(b[17:])
    assert (values["display_type"], values["slice_info"]) == ("1D tensor", "Values 17 to 19")
    worst = (a.double() - b.double()).abs().argmax().item()
    assert values["argmax_index"] == worst and values["argmax_coordinates"] == [worst]


def test_nan_and_infinities_are_strings(compared):
    browser, answer, a, b = compared
    index = place(answer, 1, "value")
    for row in range(4):
        assert browser.values(index, [row], 6)["tensor2_values"] == plain(b["1_value.pth"][row])


def test_where_the_largest_difference_is(compared):
    browser, answer, a, b = compared
    name = "0_post_ln_pre_attn.pth"
    index = place(answer, 0, "post_ln_pre_attn")
    coordinates = browser.values(index, [], 1, get_argmax=True)["argmax_coordinates"]
    worst = (a[name].double() - b[name].double()).abs()
    assert coordinates == list(divmod(worst.argmax().item(), 128))
    at = browser.values(index, coordinates, 1)
    assert abs(at["tensor1_values"][0] - at["tensor2_values"][0]) == worst.max().item()


def test_final_shape(compared):
    browser, answer, a, b = compared
    shape = browser.values(place(answer, 0, "key"), get_final_shape=True)
    assert shape["tensor_shape"] == [64, 76, 64] and shape["display_type"] == "3D tensor" and shape["slice_info"]
    assert shape["original_shapes"] == {"shape1": [8, 64, 76, 64], "shape2": [1, 64, 76, 64]}
    shape = browser.values(place(answer, 0, "post_ln_pre_attn"), get_final_shape=True)
    assert shape["original_shapes"] == [[76, 128], [76, 128]]
    shape = browser.values(place(answer, 1, "pre_mlp"), get_final_shape=True)
    assert shape["original_shapes"] == [[12], None]


def test_shapes(compared):
    browser, answer, _, _ = compared
    assert browser.post("/get_tensor_shapes", match_index=place(answer, 0, "key")) == {
        "tensor1_shape": [8, 64, 76, 64], "tensor1_name": "0_key.pth",
        "tensor2_shape": [1, 64, 76, 64], "tensor2_name": "0_key.pth"}


def test_mapping_by_hand(compared):
    browser, answer, a, b = compared
    index = place(answer, 1, "query")
    x, y = a["1_query.pth"], b["1_query.pth"]
    mapped = browser.post("/get_tensor_values_manual", match_index=index, tensor1_indices=[3, 70, 8],
                          tensor2_indices=[70, 3, 8], count=20)
    assert mapped["tensor1_values"] == mapped["tensor2_values"] == plain(x[3, 70, 8:28])
    assert mapped["tensor1_slice_info"] == "dim0[3] × dim1[70] × dim2[8:28]"
    assert mapped["tensor2_slice_info"] == "dim0[70] × dim1[3] × dim2[8:28]"
    info = mapped["summary_stats"]["comparison_info"]
    assert info == {"elements_compared": 20, "shapes_match": True, "values_identical": True}

    mapped = browser.post("/get_tensor_values_manual", match_index=index, tensor1_indices=[3, 70, 50],
                          tensor2_indices=[1, 2, 3], count=20)
    left, right = x[3, 70, 50:64], y[1, 2, 3:23]
    assert mapped["tensor1_values"] == plain(left) and mapped["tensor2_values"] == plain(right)
    stats = mapped["summary_stats"]
    assert stats["comparison_info"] == {"elements_compared": 14, "shapes_match": False, "values_identical": False}
    assert_difference(stats["difference_stats"], left, right[:14])
    assert_statistics(stats["tensor1_stats"], left)
    assert_statistics(stats["tensor2_stats"], right[:14])

    mapped = browser.post("/get_tensor_values_manual", match_index=index, tensor1_indices=[], tensor2_indices=[1], count=5)
    assert mapped["tensor1_values"] == plain(x)[:5] and mapped["tensor1_slice_info"] == "flattened[0:5]"
    assert mapped["tensor2_values"] == plain(y)[:5] and mapped["tensor2_slice_info"] == "fallback_flattened"


def test_bad_questions(compared):
    browser, answer, _, _ = compared
    for path in ("/get_tensor_values", "/get_tensor_shapes", "/get_tensor_values_manual"):
        for index in (11, -1, 2**40, "0", None, 1.5, [0]):
            assert browser.fails(path, match_index=index)
    for bad in ({"dimension_indices": "0"}, {"dimension_indices": [0, "x"]}, {"dimension_indices": {}},
                {"count": "many"}, {"count": -1}, {"count": []}, {"dimension_indices": [None]}):
        assert browser.fails("/get_tensor_values", match_index=0, **bad)
    assert browser.fails("/get_tensor_values_manual", match_index=0, tensor1_indices=["x"])
    for body, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"", "application/json"),
                       (b"match_index=0", "application/x-www-form-urlencoded")):
        status, said = browser.send("POST", "/get_tensor_values", body, kind)
        assert 400 <= status < 500 and said["error"]
    assert browser.send("GET", "/get_tensor_values")[0] == 405


# --- order, groups, pairs -------------------------------------------------------------------------------------------


def stages(answer):
    return [m["stage"] for m in answer["matches"]]


def test_reorder(compared):
    browser, answer, a, b = compared
    order = stages(answer)
    first = browser.values(0)["tensor1_values"]
    done = browser.post("/reorder_matches", old_index=0, new_index=3)
    order.insert(3, order.pop(0))
    assert done["success"] is True and done["message"] and done["new_order"] == order
    assert browser.values(3)["tensor1_values"] == first
    assert browser.values(0)["tensor1_values"] == plain(a[answer["matches"][1]["model1_file"]][0, 0, :10])
    done = browser.post("/reorder_matches", old_index=10, new_index=0)
    order.insert(0, order.pop(10))
    assert done["new_order"] == order
    assert browser.values(4)["tensor1_values"] == first
    for old, new in ((0, 11), (-1, 0), (11, 0), ("0", 1), (None, 1)):
        assert browser.fails("/reorder_matches", old_index=old, new_index=new)
    assert browser.fails("/reorder_matches", old_index=0)
    assert browser.post("/reorder_matches", old_index=2, new_index=2)["new_order"] == order


def floats(names):
    """A safetensors file of one float each."""
    header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4]}
                         for at, name in enumerate(names)}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4 * len(names))


@pytest.mark.native
def test_reorder_among_thousands_that_have_no_partner(server):
    """Each match is found from where the one before it was: time of the server's own, as machines are busy."""
    browser = Browser(server)
    shared = [f"layers.{i}.weight" for i in range(8000)]
    lone = [f"{i}.alone" for i in range(8000)]
    answer = browser.upload(model1=("a.safetensors", floats([name for two in zip(lone, shared) for name in two])),
                            model2=("b.safetensors", floats(shared)))
    order = stages(answer)
    assert len(order) == 8000
    before = processor_time(server)
    moved = browser.post("/reorder_matches", old_index=0, new_index=7999)["new_order"]
    took = processor_time(server) - before
    assert moved == order[1:] + order[:1]
    assert took < 0.3, f"{took:.2f} s"


def test_order_survives_a_restart(serve):
    server = serve()
    browser = Browser(server)
    browser.upload(**archives())
    order = browser.post("/reorder_matches", old_index=0, new_index=10)["new_order"]
    values = browser.values(10)
    server.stop()
    browser.server = serve()
    assert browser.values(10) == values
    assert browser.post("/reorder_matches", old_index=0, new_index=0)["new_order"] == order


def test_regroup(compared):
    browser, _, _, _ = compared
    for group in ("layer", "name", "similarity", "none"):
        done = browser.post("/regroup_matches", group_by=group)
        assert done["success"] is True and done["message"] and done["group_by"] == group
    assert browser.post("/regroup_matches")["group_by"] == "layer"
    assert browser.fails("/regroup_matches", group_by=3)


def test_pair_by_hand(compared):
    browser, answer, a, b = compared
    browser.post("/reorder_matches", old_index=0, new_index=3)

    def pair(name1, name2):
        done = browser.post("/manual_pair", model1_file=name1, model2_file=name2)
        match = done["match"]
        assert done["success"] is True and (match["model1_file"], match["model2_file"]) == (name1, name2)
        return match

    name1, name2 = "0_post_ln_pre_attn.pth", "1_post_ln_pre_attn.pth"
    match = pair(name1, name2)
    assert_difference(match["diff_stats"], a[name1], b[name2])
    values = browser.values(match["match_index"], [7, 100], 5)
    assert values["tensor1_values"] == plain(a[name1][7, 100:105])
    assert values["tensor2_values"] == plain(b[name2][7, 100:105])
    # A second pair is made beside the first, and one that names a tensor again takes the place of the other.
    pair("0_query.pth", "1_query.pth")
    assert pair(name1, name2)["diff_stats"] == match["diff_stats"]
    assert pair(name1, "0_post_ln_pre_attn.pth")["diff_stats"] == \
        answer["matches"][place(answer, 0, "post_ln_pre_attn")]["diff_stats"]
    assert pair("1_pre_mlp.pth", "1_post_mlp.pth")["match_type"] == "both"
    assert browser.fails("/manual_pair", model1_file="nowhere.pth", model2_file="1_post_mlp.pth")
    assert browser.fails("/manual_pair", model1_file="1_pre_mlp.pth", model2_file="1_pre_mlp.pth")
    assert browser.fails("/manual_pair", model1_file="1_pre_mlp.pth")
    assert browser.fails("/manual_pair", model1_file=1, model2_file=2)
    assert browser.values(0)["tensor1_values"]  # what was refused has changed nothing


# --- who sees what --------------------------------------------------------------------------------------------------


def test_browsers_do_not_see_each_other(server):
    first, second = Browser(server), Browser(server)
    first.upload(model1=("a.pth", saved(torch.ones(3))), model2=("b.pth", saved(torch.zeros(3))))
    second.upload(model1=("a.pth", saved(torch.full((4,), 7.0))), model2=("b.pth", saved(torch.zeros(4))))
    assert first.values(0)["tensor1_values"] == [1, 1, 1]
    assert second.values(0)["tensor1_values"] == [7, 7, 7, 7]
    # Who has no cookie sees what was compared last.
    assert Browser(server, cookies=False).values(0)["tensor1_values"] == [7, 7, 7, 7]


def test_a_script_without_cookies(server):
    script = Browser(server, cookies=False)
    script.upload(model1=("a.pth", saved(torch.ones(3))), model2=("b.pth", saved(torch.zeros(3))))
    assert script.values(0)["tensor2_values"] == [0, 0, 0]
    assert script.post("/reorder_matches", old_index=0, new_index=0)["success"] is True
