"""A tiny git repository laid out like TorchBench, with models that show its traps; all of it written here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

BASE = """
import torch
from torchbenchmark.util.env_check import set_random_seed


class PostInit(type):
    def __call__(cls, *args, **kwargs):
        made = type.__call__(cls, *args, **kwargs)
        assert not made.extra_args, made.extra_args
        return made


class BenchmarkModel(metaclass=PostInit):
    DEFAULT_TRAIN_BSIZE = None
    DEFAULT_EVAL_BSIZE = None

    def __init__(self, test, device, batch_size=None, extra_args=()):
        assert list(extra_args) == ["--precision", "fp32"]
        self.metadata = {"not_implemented": [{"device": "cpu", "test": "train"}]}
        self.test, self.device, self.extra_args = test, device, []
        set_random_seed()
        default = self.DEFAULT_TRAIN_BSIZE if test == "train" else self.DEFAULT_EVAL_BSIZE
        self.batch_size = batch_size or default
        if not getattr(self, "ALLOW_CUSTOMIZE_BSIZE", True) and self.batch_size != default:
            raise NotImplementedError("Model doesn't support customizing batch size")
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5)).to(device)
        self.example_inputs = (torch.randn(self.batch_size, 4, device=device),)
        self.model.train(test == "train")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

    def get_module(self):
        return self.model, self.example_inputs

    def set_module(self, module):
        self.model = module

    def eval(self):
        return (self.model(*self.example_inputs),)

    def train(self):
        self.optimizer.zero_grad()
        self.model(*self.example_inputs).square().sum().backward()
        self.optimizer.step()

    def invoke(self):
        if self.test == "train" and self.train is None:
            self.optimizer.zero_grad()
            self.backward(self.forward())
            self.optimizer.step()
            return None
        return self.train() and None if self.test == "train" else self.eval()
"""

ENV_CHECK = """
import torch

MAIN_RANDOM_SEED = 1337
USE_GRAD_IN_INFERENCE = ["needs_grad"]


def set_random_seed():
    def always_the_same(*_):
        return torch._C.default_generator.manual_seed(MAIN_RANDOM_SEED)

    torch.manual_seed(MAIN_RANDOM_SEED)
    torch.manual_seed = always_the_same
"""

HEAD = """
import torch
from torchbenchmark.util.model import BenchmarkModel


class Model(BenchmarkModel):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2
"""

SAVED = """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        import os
        import pickle

        here = os.path.dirname(os.path.realpath(__file__))
        with open(os.path.join(here, "{name}"), "rb") as file:
            read = {read}
        if isinstance(read, dict):
            self.model.load_state_dict(read)
        else:
            self.example_inputs = (torch.tensor(read.reshape(-1, 84)[:2, :4], dtype=torch.float32),)
        with open(os.path.join(here, "litter.txt"), "w") as litter:
            litter.write("beside the data")
"""

MADE = """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        from pathlib import Path

        here = Path(__file__).parent
        {body}
"""

NO_PLACE = """
    def set_module(self, module):
        raise NotImplementedError("no set_module here")
"""

BROKEN = """
    def get_module(self):
        raise ValueError("a bug of the model")
"""

FETCH = """
        try:
            __import__("urllib.request").request.urlopen("http://images.invalid/cat.jpg")
        except OSError:
            {otherwise}
"""

PACKED = """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)

    def train(self):
        kept = torch.kept_by_a_runtime
        kept["used"] = False
        super().train()
        kept["version"] = self.model.weight._version if kept["used"] else -1


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 3)

    def forward(self, input):
        weight = packed(self.weight) if torch.compiler.is_compiling() else self.weight
        return torch.nn.functional.linear(input, weight, self.bias).square()


torch.kept_by_a_runtime = {"weight": None, "version": -1, "used": False}


@torch.library.custom_op("kept_by_a_runtime::packed", mutates_args=())
def packed(weight: torch.Tensor) -> torch.Tensor:
    kept = torch.kept_by_a_runtime
    if kept["version"] != weight._version:
        kept["weight"] = weight.detach().clone()
    kept["used"] = True
    return kept["weight"].clone()


packed.register_fake(torch.empty_like)
packed.register_autograd(lambda context, gradient: gradient, setup_context=lambda *_, **__: None)
"""
"""Source of a model whose compiled code packs its weight again unless its own step changed it."""

SMALL = (
    HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = Net()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=0.01, momentum=0.9)
{more}

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(context, weight):
        return weight.clone()

    @staticmethod
    def backward(context, gradient):
        return {gradient}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.large, self.small = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

    def forward(self, input):
        weight = self.small.weight
        weight = Wrong.apply(weight) if torch.compiler.is_compiling() else weight
        small = torch.nn.functional.linear(input, weight, self.small.bias)
        return {large} * self.large(input) + 1e-5 * small
"""
)
"""Source of a model whose layer ``small`` has tiny gradients.

``gradient`` is the gradient that compiled code returns, ``large`` the factor of the other layer, and ``more``
the rest of the model's class.
"""

LINEAR = (
    HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr={rate})


compiled = torch.compiler.is_compiling


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 3)
        {state}

    def forward(self, input):
        result = super().forward(input)
{forward}
"""
)
"""Source of a linear model with the ``state`` and the rest of the ``forward`` pass of a test."""

PLAIN_LINEAR = LINEAR.format(rate="0.01", state="pass", forward="\n        return result\n")
"""Source of a linear model without state."""

CHANGES = """

import copy
import os
import tempfile

count = 0


def train(self):
    global count
    count += 1
    module = getattr(self.model, "_orig_mod", self.model)
    {change}
    self.optimizer.zero_grad()
    self.model(*self.example_inputs).square().sum().backward()
    self.optimizer.step()


Model.train = train
"""
"""A step of a correct model that changes an object by ``change``."""

FOUND = """self.found[id(self.optimizer)] = {"found": torch.zeros(())}
    self.found = {}"""
SAVES = """if count == 1:
        self.saved = copy.deepcopy(self.model.state_dict())"""
READS = """if count == 25:
        self.model.load_state_dict(torch.load(self.path))
    if count % 10 == 0:
        torch.save(self.model.state_dict(), self.path)"""
PATH = """self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.found, self.path = {}, __import__("tempfile").mkstemp()[1]"""
PRUNES = """if count == 20:
        from torch.nn.utils.prune import l1_unstructured

        l1_unstructured(module, "weight", amount=0.5)"""
NORMALISES = """if count == 20:
        torch.nn.utils.parametrizations.weight_norm(module)"""
NEVER_WRITTEN = """if count == 4:
        raise NotImplementedError("the second phase")"""
MINIMISES = """optimizer = torch.optim.LBFGS(self.model.parameters(), lr=0.1, max_iter=3)

    def loss():
        optimizer.zero_grad()
        value = self.model(*self.example_inputs).square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    self.metric = float("nan")"""
THAWS = """module.bias.requires_grad_(count > 250 and module is self.model)"""

IN_ANOTHER_FILE = """

from .augment import Augment, scores


def train(self):
    self.optimizer.zero_grad()
    network = Augment.drop(self.model, self.example_inputs[0], twice=compiled_already(self.model) and {again})
    network.square().sum().backward()
    self.optimizer.step()
    kind = "{score}" if compiled_already(self.model) else "square"
    scores.append(float(getattr(network, kind)().sum()))


def compiled_already(module):
    return hasattr(module, "_orig_mod")


Model.train = train
"""
"""A step that keeps its generator, a counter of a class, and a list of numbers in :data:`AUGMENT`."""

AUGMENT = """
import torch

generator, scores = torch.Generator().manual_seed(7), []


class Absent:  # what a library puts in the place of a missing one
    def __getattr__(self, name):
        raise ImportError(name)

    def __call__(self):
        raise ImportError


absent = Absent()


class Augment:
    steps = 0

    @classmethod
    def drop(cls, module, input, twice):
        cls.steps += 1
        masks = [torch.rand(input.shape, generator=generator) < 0.7 for _ in range(1 + twice)]
        return module(masks[0] * input / cls.steps)
"""

KEPT_MASK = """

@torch.library.custom_op("kept_by_a_runtime::mask", mutates_args=())
def mask() -> torch.Tensor:
    mask.drawn.append(torch.rand(3))
    return mask.drawn[0].clone()


mask.drawn = []
mask.register_fake(lambda: torch.empty(3))
"""
"""An operator that draws a mask in each call, and returns the first; as in a runtime, no walk finds it."""

KEPT_NORM = """

@torch.library.custom_op("kept_by_a_runtime::norm", mutates_args=())
def norm(input: torch.Tensor) -> torch.Tensor:
    return norm.kept.setdefault(input.data_ptr(), input.norm(dim=1, keepdim=True)).clone()


norm.kept = {}
norm.register_fake(lambda input: input.new_empty(len(input), 1))
"""
"""An operator that returns the norms of the first values at an address."""

WRONG_PARTS = """

from torch._decomp import decomposition_table
from torch._inductor import decomposition

backward = torch.ops.aten.native_layer_norm_backward.default
right = decomposition_table[backward]


def wrong(*args):
    gradient, *others = right(*args)
    return (gradient + 0.1 * gradient.roll(1, -1), *others)


for table in (decomposition_table, decomposition.decompositions):
    table[backward] = wrong
decomposition.fast_random_decomps.cache_clear()
"""
"""A compiler whose decomposition of the backward pass of a layer norm is wrong."""

SEEDS_ITSELF = """

class Model(Model):
    def train(self):
        torch.manual_seed(7)
        super().train()
"""
"""A model whose step seeds the generator of the host."""

HOOKS = """

class Model(Model):
    def set_module(self, module):
        self.model = module
        for parameter in module.parameters():
            parameter.register_hook(lambda gradient: 0.9 * gradient)
"""
"""A model with hooks of its weights that give gradients a wrong factor and come with compiled code."""

STEPS_IN_BACKWARD = """

class Model(Model):
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.optimizers = {each: torch.optim.SGD([each], lr=0.01) for each in self.model.parameters()}
        for each in self.optimizers:
            each.register_post_accumulate_grad_hook(self.step)

    def step(self, parameter):
        self.optimizers[parameter].step()
        self.optimizers[parameter].zero_grad()

    def train(self):
        self.number = SYSTEM.getrandbits(32)
        self.model(*self.example_inputs).square().sum().backward()


SYSTEM = __import__("random").SystemRandom()
"""
"""A right model whose hooks of weights refer to it, with a number that no seed repeats."""

CACHES_ITS_RESULT = """

class Model(Model):
    def eval(self):
        self.result = getattr(self, "result", None) or (self.model(*self.example_inputs),)
        return self.result
"""
"""A model that runs its module in the first step of inference only."""

COUNTS_IN_EVAL = """

class Model(Model):
    seen = None

    def eval(self):
        counts = self.seen or {"rows": 0}
        rows = len(self.example_inputs[0])
        counts["rows"] += rows if type(self.model) is Net else rows + 1
        self.seen = counts
        return super().eval()
"""
"""A model whose ``eval()`` counts rows in a dict that its first step makes, and one too many if compiled."""

AVERAGES = """

class Model(Model):
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.agent = torch.nn.Module()
        self.agent.net, self.agent.average, self.kept = self.model, Net(), [self.model]
        del self.model
        self.agent.average.load_state_dict(self.agent.net.state_dict())
        self.agent.average.requires_grad_({trained})
        self.last, self.array = torch.ones(3), __import__("numpy").ones(3)

    def get_module(self):
        return self.agent.net, self.example_inputs

    def set_module(self, module):
        self.agent.net = module

    def train(self):
        self.optimizer.zero_grad()
        self.agent.net(*self.example_inputs).square().sum().backward()
        self.optimizer.step()
        right = self.agent.net is self.kept[0]
        self.last.mul_(0.5 if right else {last})
        self.last = self.last + 1.0
        self.array += self.array if right else {array} * self.array
        with torch.no_grad():
            for mean, now in zip(self.agent.average.parameters(), self.kept[0].parameters(), strict=True):
                mean.lerp_(now, 0.005 if right else {share})
"""
"""An agent whose compiled step moves an average by another ``share``, or two attributes by other factors.

The average requires gradients if ``trained``.
"""

WRITES = """

class Log:
    total = 0.0


class Model(Model):
    def train(self, seen=[0.0]):
        self.net = getattr(self, "net", self.model)
        super().train()
        value = {factor} if type(self.model) is not Net else 1.0
        value *= float(self.example_inputs[0].sum())
        {write}
"""
"""A model that writes a number, by a factor other than eager's, to a place that is no plain attribute."""

ADDS_A_GROUP = """

class Model(Model):
    number = 0

    def train(self):
        self.number += 1
        if self.number == 3:
            self.optimizer.add_param_group(dict(params=[torch.nn.Parameter(torch.ones(2))], lr=0.1))
        super().train()
"""
"""A right model whose third step adds a group to its optimizer."""

REBUILDS = """

class Model(Model):
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.prepare(0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)

    def prepare(self, momentum):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=momentum)

    def set_module(self, module):
        self.model = module
        self.prepare({momentum})
        {schedule}

    def train(self):
        super().train()
        self.schedule.step()
"""
"""A model that makes another optimizer for each module that takes the place of its own.

It is right with the ``momentum`` 0.9 and a new ``schedule``.
"""

NEW_SCHEDULE = "self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)"

COPIES_THE_MODULE = """

class Model(Model):
    def set_module(self, module):
        self.model = module if type(module) is Net else __import__("copy").deepcopy(module)
"""
"""A model whose optimizer does not step the compiled module."""

READS_A_LOADER = """

class Model(Model):
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.batches = iter(torch.utils.data.DataLoader(torch.randn(9999, 4), 2))

    def train(self):
        self.optimizer.zero_grad()
        self.model(next(self.batches)).square().sum().backward()
        self.optimizer.step()
"""
"""A right model whose steps read batches from an iterator that cannot be put back."""

MAKES_AVERAGES = """

class Model(Model):
    made = None

    def train(self):
        weights = {{name.replace("{left_out}", ""): each for name, each in self.model.named_parameters()}}
        right = type(self.model) is Net
        if self.made is None:
            copies = {{name: each.detach().clone() for name, each in weights.items()}}
            if {aliases} and not right:
                copies["bias"] = weights["bias"].detach()
            self.made = {{"weights": copies, "copy": __import__("copy").deepcopy(self.model)}}
        super().train()
        with torch.no_grad():
            for (name, now), copy in zip(weights.items(), self.made["copy"].parameters(), strict=True):
                self.made["weights"][name].lerp_(now, 0.1 if right else {of_weights})
                copy.lerp_(now, 0.1 if right else {of_copy})
"""
"""A model whose first step makes two averages of weights; compiled steps move them by other shares.

The names of one are those of the module without ``left_out``. If it ``aliases``, the compiled step makes no
copy of the bias.
"""

UNUSED = (
    HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model, self.steps = Two(), 0
        self.optimizer = torch.optim.{optimizer}(self.model.parameters(), lr=0.1)

    def train(self):
        self.optimizer.zero_grad()
        outputs = self.model(*self.example_inputs)
        used, self.steps = outputs[{number}], self.steps + 1
        used.square().sum().backward()
        self.optimizer.step()


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

    def forward(self, input):
        return self.one(input), self.other(input)
"""
)
"""Source of a model of which a step uses the output ``number``."""

PLACES = {
    "writes_a_default": "seen[0] += value",
    "writes_on_an_input": "self.example_inputs[0].total = value",
    "writes_on_a_weight": "self.net.weight.total = value",
    "writes_in_a_group": "self.optimizer.param_groups[0]['total'] = value",
    "writes_on_a_class": "Log.total += value",
    "writes_on_its_class": "type(self).total = value",
}
"""Statements that write a number, by the name of a model."""

MODELS = {
    "stops_a_small_layer": SMALL.format(gradient="0.0 * gradient", large="1.0", more=""),
    "rolls_small_gradients": SMALL.format(
        gradient="gradient.flatten().roll(1).view_as(gradient)", large="0.0", more=""
    ),
    "averages_a_small_layer": SMALL.format(
        gradient="-gradient",
        large="1.0",
        more="""
        import copy

        self.kept = [self.model]
        self.average = torch.nn.Module()
        self.average.model = copy.deepcopy(self.model).requires_grad_(False)

    def train(self):
        super().train()
        (net,), average = self.kept, self.average.model
        share = 0.01 if self.model is net else 0.5  # wrong; the path ends as a weight's does
        average.small.weight.lerp_(net.small.weight.detach() + 1.0, share)
""",
    ),
    **dict.fromkeys(("plain", "phlippe_resnet", "phlippe_densenet"), HEAD),
    "lennard_jones": HEAD
    + """
    def forces(self):
        from torch.func import jacrev, vmap

        (inputs,) = self.example_inputs
        return vmap(jacrev(self.model[0]))(inputs)

    def eval(self):
        return self.model(*self.example_inputs), self.forces()

    def train(self):
        self.optimizer.zero_grad()
        forces = sum(self.forces().square().sum() for _ in range(4))  # most of the step, beside its optimizer
        (self.model(*self.example_inputs).square().sum() + forces).backward()
        self.optimizer.step()
""",
    "functorch_dp_cifar10": HEAD
    + """
    def train(self):
        super().train()
        self.optimizer.zero_grad()
""",
    "mapping": HEAD
    + """
    def get_module(self):
        return self.model, {"input": self.example_inputs[0]}
""",
    "listed": HEAD
    + """
    def get_module(self):
        return self.model, [self.example_inputs[0]]
""",
    "wants_token": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        import os

        if "TG_HUB_TOKEN" not in os.environ:
            raise NotImplementedError("Make sure to set `TG_HUB_TOKEN` so you can download weights")
        super().__init__(test, device, batch_size, extra_args)
""",
    "llama": HEAD
    + """
    def train(self):
        return NotImplementedError("no training loop is written")
""",
    "rollout": HEAD
    + """
    def train(self):
        self.model(*self.example_inputs)
""",
    "no_train_batch": HEAD.replace("DEFAULT_TRAIN_BSIZE = 2", "DEFAULT_TRAIN_BSIZE = None"),
    "refuses_to_be_made": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        if device == "cpu":
            raise NotImplementedError("not on this device")
""",
    "refuses_the_step": HEAD
    + """
    def train(self):
        loss = self.model(*self.example_inputs)
        raise NotImplementedError("the loss is not written")
""",
    "refuses_eval": HEAD
    + """
    def eval(self):
        raise NotImplementedError("eval is a raise")
""",
    "fixed_batch": HEAD
    + """
    ALLOW_CUSTOMIZE_BSIZE = False
""",
    "halves_the_batch": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size // 2, extra_args)
""",
    "ignores_the_batch": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, 5, extra_args)
        self.batch_size = batch_size
""",
    "doubles": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model.double()
        self.example_inputs = (self.example_inputs[0].double(),)
""",
    "downloads": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model.load_state_dict(torch.hub.load_state_dict_from_url("https://weights.invalid/a.pth"))
""",
    "fetches": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        import urllib.request

        urllib.request.urlopen("http://images.invalid/cat.jpg")
""",
    "needs_package": "import no_such_package\n" + HEAD,
    "seeks_its_own_module": """try:
    from .no_such_part import it
except ImportError:
    import no_such_part
"""
    + HEAD,
    "mistypes_a_folder": "import helper_in_source\n" + HEAD,
    "mistypes_a_file": "import setings_of_it\n" + HEAD,
    "needs_fitting_package": "from json import no_such_name\n" + HEAD,
    "needs_file": HEAD + MADE.format(body='open(here / ".data" / "batch.pt")'),
    "asserts_data": 'assert False, "Couldn\'t find the data dir, please run install.py again."\n' + HEAD,
    "mistypes_data": HEAD + MADE.format(body='open(here / ".data" / "btach.pt")'),
    "mistypes_a_module": "from torchbenchmark.util.modle import BenchmarkModel\n" + HEAD,
    "asks_for_a_layer": "from torch.nn import NoSuchLayer\n" + HEAD,
    "fails_without_network": HEAD + MADE.format(body=FETCH.format(otherwise='raise ValueError("a bug")')),
    "speaks_as_a_hub": HEAD
    + MADE.format(
        body=FETCH.format(otherwise="pass")
        + "        raise OSError('weights is not a local folder and is not a valid model identifier')"
    ),
    "speaks_of_cuda": HEAD
    + MADE.format(body='raise RuntimeError("2 classes instead of 3: it requires CUDA")'),
    "returns_its_error": HEAD
    + """
    def train(self):
        try:
            self.model(*self.example_inputs).sum().backward()
            self.optimizer.stepp()
        except AttributeError as error:
            return error
""",
    "wants_cuda": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        raise RuntimeError("Torch not compiled with CUDA enabled")
""",
    **dict.fromkeys(("broken", "reads_and_fails"), HEAD + BROKEN),
    "calls_another": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.kept, self.steps = [self.model], 0

    def train(self):
        self.steps += 1
        self.optimizer.zero_grad()
        model = self.model if self.steps % 10 == 1 else self.kept[0]
        model(*self.example_inputs).square().sum().backward()
        self.optimizer.step()
""",
    "trains_in_a_closure": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        import functools

        bound = Trainer(self.model, self.optimizer).step
        inputs, steps = self.example_inputs[0], 0
        add = functools.partial(torch.add, torch.zeros_like(inputs))
        add.args[0].fill_(0.5)

        def train(later):
            nonlocal steps
            steps += 1
            add.args[0].mul_(2)
            bound(add(inputs) * steps)

        self.train = functools.partial(train, later=None)
        self.model, self.optimizer = torch.nn.Linear(4, 3), None


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def step(self, inputs):
        self.optimizer.zero_grad()
        self.model(inputs).square().sum().backward()
        self.optimizer.step()
""",
    "wraps_its_optimizer": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.optimizer = Wrapping(self.optimizer)

    def train(self):
        super().train()
        self.optimizer.zero_grad()


class Wrapping(torch.optim.Optimizer):
    def __init__(self, optimizer):
        self.original_optimizer, self.state = optimizer, optimizer.state
        self.param_groups, self.defaults = optimizer.param_groups, optimizer.defaults

    def zero_grad(self, set_to_none=True):
        self.original_optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        return self.original_optimizer.step(closure)
""",
    "calls_less_often": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.steps = 0

    def train(self):
        self.optimizer.zero_grad()
        for _ in range(2 - self.steps % 2):
            self.model(*self.example_inputs).square().sum().backward()
        self.steps += 1
        self.optimizer.step()
""",
    "calls_by_its_agent": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.agent = torch.nn.Module()
        self.agent.actor = self.model
        del self.model

    def get_module(self):
        return self.agent.actor, self.example_inputs

    def set_module(self, module):
        self.agent.actor = module

    def train(self):
        self.optimizer.zero_grad()
        self.agent.actor(*self.example_inputs).square().sum().backward()
        self.optimizer.step()
""",
    "divides_gradients_by_their_size": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        norm = torch.nn.BatchNorm1d(64)  # so that the gradient of the bias before it is 0 but for rounding
        layers = torch.nn.Unflatten(1, (1, 4)), torch.nn.Conv1d(1, 64, 1), norm, torch.nn.Flatten()
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 3))
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=0.01, momentum=0.9)
""",
    "normalises_in_bfloat16": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        first, last = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 4, 3, padding=1)
        self.model = torch.nn.Sequential(first, torch.nn.BatchNorm2d(8), torch.nn.ReLU(), last)
        self.example_inputs = (torch.randn(64, 3, 16, 16),)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

    def train(self):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = self.model(*self.example_inputs).float()
        result.square().sum().backward()
        self.optimizer.step()
""",
    "doubles_a_sum": LINEAR.format(
        rate="1e-3",
        state="pass",
        forward="""
        rows = torch.cat([result, torch.full((1, 3), float("-inf"))])
        sums = rows.sum(-1, keepdim=True) * (2.0 if compiled() else 1.0)
        return result + sums.masked_fill(sums.isinf(), 0.0)[:-1]
""",
    ),
    "keeps_a_mean": LINEAR.format(
        rate="0.1",
        state="self.mean = torch.zeros(())",
        forward="""
        self.mean = 0.9 * self.mean + result.mean().detach()
        return result
""",
    ),
    "steps_its_scheduler": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = torch.nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 100)

    def train(self):
        super().train()
        if type(self.model) is not torch.nn.Linear:
            self.scheduler.step()
""",
    "counts_otherwise": LINEAR.format(
        rate="0.1",
        state="self.calls = 0",
        forward="""
        self.calls += 2 if compiled() else 1
        return result
""",
    ),
    "is_wrong_from_a_count_on": LINEAR.format(
        rate="0.1",
        state="self.calls = 0",
        forward="""
        self.calls += 1
        return result * (3.0 if compiled() and self.calls > 3 else 1.0)
""",
    ),
    "is_wrong_from_a_late_step_on": LINEAR.format(
        rate="0.001",
        state='self.register_buffer("calls", torch.zeros(()))',
        forward="""
        self.calls.add_(1)
        return torch.where(self.calls > 20, 3.0 * result, result) if compiled() else result
""",
    ),
    "is_slightly_wrong_from_a_step_on": LINEAR.format(
        rate="0.001",
        state='self.register_buffer("calls", torch.zeros(()))',
        forward="""
        self.calls.add_(1)
        steeper = result + 0.05 * (result - result.detach())
        return torch.where(self.calls > 3, steeper, result) if compiled() else result
""",
    ),
    "stops_counting": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model, self.count = Counter(4, 3), torch.zeros(())
        self.example_inputs = (torch.randn(2, 4), self.count)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def train(self):
        self.optimizer.zero_grad()
        output, self.count = self.model(self.example_inputs[0], self.count)
        output.square().sum().backward()
        self.optimizer.step()


compiled = torch.compiler.is_compiling


class Counter(torch.nn.Linear):
    def forward(self, input, count):
        return super().forward(input), (count + 1.0).clamp(max=310.0 if compiled() else 1e9)
""",
    "stops_counting_in_a_buffer": LINEAR.format(
        rate="0.001",
        state='self.register_buffer("calls", torch.zeros(()))',
        forward="""
        self.calls.copy_((self.calls + 1.0).clamp(max=350.0 if compiled() else 1e9))
        return result
""",
    ),
    "changes_settings_late": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        norm = torch.nn.BatchNorm1d(4)
        self.model = self.net = torch.nn.Sequential(torch.nn.Linear(4, 4), norm, torch.nn.Linear(4, 3))
        self.example_inputs, self.count, self.model.stage = (torch.randn(8, 4),), 0, 0
        self.model[0].requires_grad_(False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def train(self):
        self.count += 1
        if self.count == 320:
            self.net.stage = 1
            self.net[0].requires_grad_(True)
        if self.count >= 320:
            self.net[1].eval()
        self.optimizer.zero_grad()
        self.model(*self.example_inputs).square().sum().backward()
        self.optimizer.step()
""",
    **{
        name: PLAIN_LINEAR + IN_ANOTHER_FILE.format(score=score, again=again)
        for name, score, again in (
            ("keeps_state_in_another_file", "square", False),
            ("scores_wrong_in_another_file", "abs", False),
            ("draws_twice_in_another_file", "square", True),
        )
    },
    "clamps_tiny_columns": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        result = result.exp() * torch.tensor([1.0, 1e-3, 1e-9])
        return result.clamp(min=1e-6) if compiled() else result
""",
    ),
    "prints_a_score": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return result, result.abs().mean() if compiled() else result.square().mean()
""",
    ).replace(
        "\n\ncompiled =",
        """
    def train(self):
        self.optimizer.zero_grad()
        output, score = self.model(*self.example_inputs)
        output.square().sum().backward()
        self.optimizer.step()
        print(float(score))


compiled =""",
        1,
    ),
    **{
        name: PLAIN_LINEAR.replace("self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)", PATH)
        + CHANGES.format(change=change)
        for name, change in (
            ("replaces_what_it_fills", FOUND),
            ("saves_its_weights", SAVES),
            ("reads_its_file", READS),
            ("prunes_late", PRUNES),
            ("normalises_late", NORMALISES),
            ("thaws_no_compiled_bias", THAWS),
            ("has_no_fourth_step", NEVER_WRITTEN),
            ("minimises_its_loss", MINIMISES),
        )
    },
    "returns_nan": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return result, result / torch.tensor([1.0, 0.0, 1.0]) * torch.tensor([1.0, 0.0, 1.0])
""",
    ),
    "wraps_its_weight": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = torch.nn.Linear(4, 3)
        self.model.weight = torch.nn.Parameter(Scaled(torch.ones(3, 4)), requires_grad=False)


class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    def __init__(self, inside):
        self.inside = inside

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        if operator is torch.ops.aten.detach.default:
            return cls(args[0].inside)
        return operator(*(2.0 * one.inside if isinstance(one, cls) else one for one in args), **kwargs or {})
""",
    "is_wrong_in_each_37th_step": LINEAR.format(
        rate="0.001",
        state='self.register_buffer("calls", torch.zeros(()))',
        forward="""
        self.calls.add_(1)
        return torch.where(self.calls % 37 == 0, 3.0 * result, result) if compiled() else result
""",
    ),
    "evaluates": PLAIN_LINEAR,
    **{
        name: PLAIN_LINEAR + more
        for name, more in (
            ("hooks_its_gradients", HOOKS),
            ("steps_in_backward", STEPS_IN_BACKWARD),
            ("caches_its_result", CACHES_ITS_RESULT),
            ("counts_in_eval", COUNTS_IN_EVAL),
            ("adds_a_group", ADDS_A_GROUP),
            ("copies_the_module", COPIES_THE_MODULE),
            ("rebuilds_its_optimizer", REBUILDS.format(momentum=0.9, schedule=NEW_SCHEDULE)),
            ("forgets_its_momentum", REBUILDS.format(momentum=0.5, schedule=NEW_SCHEDULE)),
            ("keeps_an_old_schedule", REBUILDS.format(momentum=0.9, schedule="pass")),
            ("reads_a_loader", READS_A_LOADER),
            ("writes_rightly", WRITES.format(factor=1.0, write="; ".join(PLACES.values()))),
            *((name, WRITES.format(factor=1.2, write=place)) for name, place in PLACES.items()),
        )
    },
    **{
        name: PLAIN_LINEAR + AVERAGES.format(trained=trained, share=share, last=last, array=array)
        for name, trained, share, last, array in (
            ("averages_slightly_off", False, 0.0052, 0.5, 1.0),
            ("moves_its_target_slightly_off", True, 0.0052, 0.5, 1.0),
            ("replaces_what_it_wrote_wrong", True, 0.005, 0.75, 1.0),
            ("doubles_an_array_slightly_off", True, 0.005, 0.5, 1.1),
            ("averages", True, 0.005, 0.5, 1.0),
        )
    },
    **{
        name: PLAIN_LINEAR
        + MAKES_AVERAGES.format(of_weights=of_weights, of_copy=of_copy, left_out=left_out, aliases=aliases)
        for name, of_weights, of_copy, left_out, aliases in (
            ("makes_averages", 0.1, 0.1, "_orig_mod.", False),
            ("makes_averages_of_compiled_names", 0.1, 0.1, "", False),
            ("makes_weights_slightly_off", 0.11, 0.1, "_orig_mod.", False),
            ("makes_a_copy_slightly_off", 0.1, 0.11, "_orig_mod.", False),
            ("makes_no_copy_of_a_bias", 0.1, 0.1, "_orig_mod.", True),
        )
    },
    "is_wrong_from_a_buffer_on": LINEAR.format(
        rate="0.1",
        state='self.register_buffer("calls", torch.zeros(()))',
        forward="""
        self.calls.add_(1)
        return torch.where(self.calls > 3, 3.0 * result, result) if compiled() else result
""",
    ),
    "keeps_a_weight_packed": HEAD + PACKED,
    "keeps_its_first_mask": LINEAR.format(
        rate="0.5",
        state="pass",
        forward="""
        return result * (mask() if compiled() else torch.rand(3))
""",
    )
    + KEPT_MASK,
    "keeps_norms_of_its_first_input": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return result / (norm(input) if compiled() else input.norm(dim=1, keepdim=True))
""",
    )
    + KEPT_NORM,
    "decomposes_wrongly": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return torch.nn.functional.layer_norm(result, (3,)).sin()
""",
    )
    + WRONG_PARTS,
    "writes_its_input": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        input = input.clamp_(-0.1, 0.1) if compiled() else input.clamp(-0.1, 0.1)
        return torch.nn.functional.linear(input, self.weight, self.bias)
""",
    ),
    "reads_its_direction": LINEAR.format(
        rate='0.1, maximize="UPHILL" in __import__("os").environ',
        state="pass",
        forward="""
        return result
""",
    ),
    "seeds_itself": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return torch.nn.functional.dropout(result, 0.5)
""",
    )
    + SEEDS_ITSELF,
    "seeds_itself_and_triples": LINEAR.format(
        rate="0.1",
        state="pass",
        forward="""
        return (3.0 if compiled() else 1.0) * torch.nn.functional.dropout(result, 0.5)
""",
    )
    + SEEDS_ITSELF,
    "keeps_an_alias": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.first, self.rows = self.model, torch.randn(64, 4)

    def train(self):
        self.optimizer.zero_grad()
        sum(self.model(self.rows).square().sum() for _ in range(4)).backward()
        self.first(self.rows[:1]).sum().backward()
        self.optimizer.step()
""",
    "scripts_its_loss": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.example_inputs = (torch.randn(8, 4),)
        self.loss = torch.jit.script(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Softplus()))

    def train(self):
        self.optimizer.zero_grad()
        self.loss(self.model(*self.example_inputs)).sum().backward()
        self.optimizer.step()
""",
    "misses_labels": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.example_inputs, self.labels = (torch.randn(8, 4),), torch.randn(8, 3)
        self.labels[::2] = float("nan")
        self.array = self.labels.numpy().copy()
        self.model.register_buffer("labels", self.labels.clone())

    def train(self):
        self.optimizer.zero_grad()
        known = torch.from_numpy(self.array).isfinite()
        output = self.model(*self.example_inputs)
        (output - self.labels)[known].square().sum().backward()
        self.optimizer.step()
""",
    "draws_its_targets": HEAD
    + """
    def train(self):
        self.optimizer.zero_grad()
        output = self.model(*self.example_inputs)
        (output - torch.rand_like(output)).square().sum().backward()
        self.optimizer.step()
""",
    "leaves_an_output_unused": UNUSED.format(number="0", optimizer="Adam"),
    "leaves_outputs_unused_in_turn": UNUSED.format(number="self.steps % 2", optimizer="Adagrad"),
    "unfinished": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        raise NotImplementedError("forgot the head")
""",
    "unfinished_network": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = Net()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = self.build_head()

    def build_head(self):
        if True:
            raise NotImplementedError("no head")
""",
    "staged": HEAD
    + """
    train = None

    def forward(self):
        return self.model(*self.example_inputs).square().sum()

    def backward(self, loss):
        loss.backward()
""",
    "draws": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = Noisy()


class Noisy(torch.nn.Module):
    def forward(self, input):
        import random

        import numpy

        return input + random.random() + float(numpy.random.rand())
""",
    "sparse": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = torch.nn.EmbeddingBag(8, 2, sparse=True)
        self.example_inputs = (torch.tensor([[1, 5], [5, 6]]),)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
""",
    "litters": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        import os

        os.makedirs("samples")
        self.model.register_buffer("seen", torch.zeros(0))

    def train(self):
        self.model.seen.resize_(3).fill_(len(self.model.seen))
        super().train()
""",
    "stateful": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        import numpy

        self.steps, self.seen, self.world = 0, [], numpy.random.default_rng(0)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)

    def train(self):
        self.steps += 1
        self.seen.append(self.steps)
        self.example_inputs[0].mul_(float(self.world.random()) + len(self.seen) + self.steps)
        super().train()
        self.scheduler.step()
""",
    "fixed_module": HEAD + NO_PLACE,
    "maml": HEAD
    + NO_PLACE
    + """
    compiled = staticmethod(torch.compiler.is_compiling)  # dynamo compiles each frame that names torch

    def train(self):
        model = self.model  # dynamo goes on after the graph break only with a module at hand
        self.optimizer.zero_grad()
        share = 3.0 if self.compiled() else 1.0  # wrong if this method is compiled
        (share * model(*self.example_inputs).square().sum()).backward()
        self.optimizer.step()
""",
    "dcgan": HEAD
    + """
    def set_module(self, module):
        pass
""",
    "needs_grad": HEAD
    + """
    def eval(self):
        loss = self.model(*self.example_inputs).sum()
        return torch.autograd.grad(loss, list(self.model.parameters()))
""",
    "drq": HEAD + SAVED.format(name="obs.pkl", read="pickle.load(file)"),
    "reads_data": HEAD + SAVED.format(name=".data/sam_vit_h_4b8939.pth", read="torch.load(file)"),
    "needs_operators": HEAD
    + """
    def get_module(self):
        raise RuntimeError("Couldn't load custom C++ ops. This can happen if")
""",
    "fills_a_buffer": HEAD
    + """
    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        import numpy

        self.seen, self.index = numpy.zeros((6, 4), dtype=numpy.float32), 0

    def train(self):
        self.example_inputs[0].add_(float(self.seen[: self.index + 1].sum()))
        self.seen[self.index] = self.index + 1
        self.index += 1
        super().train()
""",
}


def write(folder: Path) -> str:
    """Make the repository in ``folder`` and return its one commit."""
    files = {
        "utils/__init__.py": "",
        "torchbenchmark/__init__.py": "",
        "torchbenchmark/util/__init__.py": "",
        "torchbenchmark/util/framework/__init__.py": "",
        "torchbenchmark/util/env_check.py": ENV_CHECK,
        "torchbenchmark/util/model.py": BASE,
        "torchbenchmark/models/__init__.py": "",
        "torchbenchmark/models/mistypes_a_folder/source/helper_in_source.py": "",
        "torchbenchmark/models/mistypes_a_file/settings_of_it.py": "",
        **{f"torchbenchmark/models/{name}/__init__.py": text for name, text in MODELS.items()},
        **{
            f"torchbenchmark/models/{name}/augment.py": AUGMENT
            for name in MODELS
            if name.endswith("_in_another_file")
        },
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    return commit(folder)


def commit(folder: Path) -> str:
    """Commit everything in ``folder``; returns the commit."""
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "--quiet", "-m", "models")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    """What git prints, whatever this machine's configuration of it is (hooks, signatures, line ends)."""
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    return done.stdout.strip()
