#!/usr/bin/env python3
"""A recorded run that grows as it is told: one line of JSON on stdin is one step, answered with "ok" once it is in run.db.

    write_run.py DIR
    {"number": 3, "scalars": {"loss": 1.5}, "tensors": {"fc.weight.grad": [1, 2]}, "spans": [["model/fc", 0, 5000000]]}
    {"end": true}

Numbers may be "nan" and "inf".
"""
import json
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from runfiles import SKETCH, Run  # noqa: E402


def main():
    run = Run(sys.argv[1], program="train.py", pid=os.getpid(), host=os.uname().nodename)
    run.commit()
    print("ok", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if told.get("end"):
            break
        number = told.get("number", run.ordinal)
        if told.get("spans"):
            run.spans([tuple(span) for span in told["spans"]])
        for name, values in told.get("tensors", {}).items():
            run.tensor(name, np.array([float(v) for v in values], "float32"), kind=SKETCH)
        for name, value in told.get("scalars", {}).items():
            run.scalar(name, number, float(value))
        run.step(number=number)
        print("ok", flush=True)
    run.close()
    print("ok", flush=True)


main()
