"""The real TensorBoard reads what `tdbg export tensorboard` wrote, value for value."""
import numpy as np
from runfiles import SKETCH, Run
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.plugins.histogram import metadata as histograms
from tensorboard.util import tensor_util

rng = np.random.default_rng(5)


def exported(tdbg, tmp_path, steps=200):
    run = Run(tmp_path / "run", started=1_700_000_000)
    losses, weights = [], []
    for step in range(steps):
        losses.append(float(3 * 0.99**step))
        run.scalar("train/loss", 10 * step, losses[-1], time_ns=step * 1_000_000)
        weights.append(rng.standard_normal((16, 16)).astype("float32"))
        run.tensor("fc.weight", weights[-1], kind=SKETCH)
        run.step(number=10 * step)
    run.scalar("zero", 0, 0.0)
    run.close()
    tdbg.text("export", "tensorboard", run.folder, tmp_path / "logs")
    return losses, weights


def test_event_accumulator(tdbg, tmp_path):
    losses, weights = exported(tdbg, tmp_path)
    events = event_accumulator.EventAccumulator(str(tmp_path / "logs"), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    assert events.file_version == 2
    assert events.Tags()["scalars"] == ["train/loss", "zero"]
    scalars = events.Scalars("train/loss")
    assert [s.value for s in scalars] == [float(np.float32(v)) for v in losses]
    assert [s.step for s in scalars] == [10 * i for i in range(len(losses))]
    assert [s.wall_time for s in scalars] == [1_700_000_000 + i * 1e-3 for i in range(len(losses))]
    assert [s.value for s in events.Scalars("zero")] == [0.0]
    for tensor, weight in zip(events.Tensors("fc.weight"), weights, strict=True):
        rows = tensor_util.make_ndarray(tensor.tensor_proto)
        counts, edges = np.histogram(weight.astype("float64"), 64)
        assert rows.shape == (64, 3) and (rows[:, 2] == counts).all()
        np.testing.assert_allclose(rows[:, 0], edges[:-1], rtol=1e-12, atol=1e-15)


def test_the_pages_of_tensorboard_find_their_plugins(tdbg, tmp_path):
    """What the scalar and histogram dashboards are made of."""
    exported(tdbg, tmp_path, steps=3)
    events = plugin_event_accumulator.EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    assert set(events.PluginTagToContent("scalars")) == {"train/loss", "zero"}
    assert set(events.PluginTagToContent(histograms.PLUGIN_NAME)) == {"fc.weight"}
    assert events.SummaryMetadata("fc.weight").data_class == 2
    assert [e.step for e in events.Tensors("fc.weight")] == [0, 10, 20]
