"""KevGomes1403/trainium-model-translation: kernels of Qwen3.6-A3B (DeltaNet and grouped-query attention), each with a test of its
own against PyTorch. They use parts of AWS's nki-library, so a checkout of that stands beside."""

import importlib
import io
import sys
from contextlib import redirect_stdout

from checkout import case

REPOSITORY, LIBRARY = "KevGomes1403/trainium-model-translation", "aws-neuron/nki-library"
KERNELS = "models/qwen3_6_moe/nki_kernels"


def _test_module(at, name):
    """The test's module. The package's own ``__init__`` needs a serving stack of a device; the kernels do not."""
    from vtrn.nkilib import shims

    library = at.other(LIBRARY)
    shims.install(str(library))
    sys.path.insert(0, str(library / "src/nkilib_src"))
    at.bare_packages("models")
    return importlib.import_module(f"models.qwen3_6_moe.tests.test_{name}")


def _run(at, name, **changes):
    module = _test_module(at, name)
    for variable, value in changes.items():
        assert hasattr(module, variable)
        setattr(module, variable, value)
    said = io.StringIO()
    with redirect_stdout(said):
        module.main()
    passes = said.getvalue().count("PASS") + said.getvalue().count("True")
    at.true(passes, "its test printed no verdict")


def _kernel(title, test, path, kernels=1, **more):
    def check(at):
        _run(at, test)

    check.__name__ = title.replace(" ", "_").replace(",", "").replace("-", "_")
    check.__doc__ = title
    return case(
        REPOSITORY, f"{KERNELS}/{path}", "its own, PyTorch", target="trn3", kernels=kernels, needs=("torch", LIBRARY), **more
    )(check)


_kernel("DeltaNet: decode convolution", "deltanet_conv_tkg_kernel", "deltanet/components/conv.py", 2)
_kernel("DeltaNet: chunked prefill", "deltanet_fused_kernel", "deltanet/prefill/chunked_fused.py")
_kernel("DeltaNet: input projection", "deltanet_in_proj_kernel", "deltanet/components/in_proj.py")
_kernel("DeltaNet: whole decode layer", "deltanet_in_proj_out_fused_kernel", "deltanet/decode/fused_layer.py", 2)
_kernel("DeltaNet: output projection", "deltanet_out_proj_kernel", "deltanet/components/out_proj.py")
_kernel("DeltaNet: recurrent decode", "deltanet_tkg_kernel", "deltanet/decode/recurrent.py", 2)
_kernel("GQA: decode attention", "gqa_attention_kernel", "gqa/components/attention.py", 2)
_kernel("GQA: whole decode layer", "gqa_fused_layer_kernel", "gqa/decode/fused_layer.py")
_kernel("GQA: output projection", "gqa_out_proj_kernel", "gqa/components/out_proj.py")
_kernel("GQA: RMSNorm", "gqa_pre_attn_rmsnorm_kernel", "gqa/components/pre_attn_norm.py")
_kernel("GQA: norm of queries and keys", "gqa_qk_norm_kernel", "gqa/components/qk_norm.py")
_kernel("GQA: projection to q, k, v", "gqa_qkv_proj_kernel", "gqa/components/qkv_proj.py")
_kernel("GQA: partial rotary embedding", "gqa_rope_kernel", "gqa/components/rope.py")


@case(
    REPOSITORY, f"{KERNELS}/deltanet/decode/fused_layer.py", "its own, PyTorch", target="trn3", kernels=2, needs=("torch", LIBRARY)
)  # fmt: skip
def deltanet_input_projection_to_recurrence(at):
    """DeltaNet: projection, convolution and recurrence

    In fp32: the test's gate of 1e-5 is finer than the bf16 that it gives to the kernel.
    """
    import torch

    _run(at, "deltanet_in_proj_fused_kernel", DTYPE=torch.float32)
