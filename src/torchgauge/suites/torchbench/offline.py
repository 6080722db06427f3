"""Build TorchBench's models without a network: the published architecture with random weights.

These are replaced for the process of one model: torchvision's ``WeightsEnum.get_state_dict``,
``torch.hub.load_state_dict_from_url``, ``torch.load`` for files that only stand for weights,
``Module.load_state_dict`` for what those three now return, ``timm.create_model``, fastNLP's encoder and the
``from_pretrained`` of configurations. Every connection that leaves the machine is refused and remembered, so
that a model which needs one says so instead of waiting.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from torchgauge.errors import NoNetworkError

_LOOPBACK = ("localhost", "127.", "::1")


class NoWeights(dict):  # type: ignore[type-arg]
    """Stands for a file of weights that was not fetched: loading it changes nothing."""


class NetworkRefusedError(OSError):
    """A connection that was refused because models are built without a network."""


class Offline:
    """What was replaced in this process, and the hosts that were asked for."""

    def __init__(
        self, configs: Mapping[str, Mapping[str, Any]], without_weights: Sequence[Path] = ()
    ) -> None:
        """``configs`` maps a hub name to ``model_type`` and the fields of its configuration.

        ``without_weights`` are files that stand for weights and hold none.
        """
        self.configs, self.without_weights = configs, without_weights
        self.refused: list[str] = []

    def install(self, libraries: Sequence[str]) -> None:
        """Replace the downloads of PyTorch and of ``libraries``; raises ``ModuleNotFoundError``."""
        self._refuse_connections()
        _load_nothing_from_urls()
        if self.without_weights:
            _load_nothing_from(self.without_weights)
        if "torchvision" in libraries:
            _torchvision_without_weights()
        if "timm" in libraries:
            _timm_without_weights()
        if "fastNLP" in libraries:
            _fastnlp_without_weights()
        if "transformers" in libraries:
            self._configurations_from_data()

    def _refuse_connections(self) -> None:
        connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo

        def guarded_connect(this: socket.socket, address: Any) -> None:
            if this.family in {socket.AF_INET, socket.AF_INET6}:
                self._check(address[0])
            connect(this, address)

        def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
            self._check(host)
            return getaddrinfo(host, *args, **kwargs)

        socket.socket.connect = guarded_connect  # type: ignore[method-assign,assignment]
        socket.getaddrinfo = guarded_getaddrinfo

    def _check(self, host: Any) -> None:
        name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
        if not name.startswith(_LOOPBACK) and name != socket.gethostname():
            self.refused.append(name)
            raise NetworkRefusedError(f"models are built without a network, but this model requests {name}")

    def _configurations_from_data(self) -> None:
        import transformers
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        configs = self.configs

        def replace(kind: Any) -> None:
            original = kind.from_pretrained.__func__

            def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
                if Path(str(name)).is_dir():
                    return original(cls, name, *args, **kwargs)
                if name not in configs:
                    raise NoNetworkError(
                        f"the configuration of {name} is on a hub and not in torchgauge's data",
                        hint="--pretrained on a machine with a network",
                    )
                fields = dict(configs[name])
                return CONFIG_MAPPING[fields.pop("model_type")](**fields)

            kind.from_pretrained = classmethod(from_pretrained)

        replace(transformers.AutoConfig)
        replace(transformers.PretrainedConfig)


def _load_nothing_from_urls() -> None:
    load = torch.nn.Module.load_state_dict

    def load_state_dict(this: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, NoWeights):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return load(this, state_dict, *args, **kwargs)

    torch.nn.Module.load_state_dict = load_state_dict
    torch.hub.load_state_dict_from_url = lambda *_, **__: NoWeights()


def _load_nothing_from(files: Sequence[Path]) -> None:
    read = torch.load

    def load(file: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(file, "name", file)
        if isinstance(name, (str, Path)) and Path(name).resolve() in files:
            return NoWeights()
        return read(file, *args, **kwargs)

    torch.load = load


def _torchvision_without_weights() -> None:
    from torchvision.models import _api

    _api.WeightsEnum.get_state_dict = lambda *_, **__: NoWeights()


def _timm_without_weights() -> None:
    import timm

    create = timm.create_model

    def create_model(name: Any, _pretrained: Any = False, *args: Any, **kwargs: Any) -> Any:
        return create(name, False, *args, **{k: v for k, v in kwargs.items() if k != "pretrained"})

    timm.create_model = create_model


def _fastnlp_without_weights() -> None:
    """Build fastNLP's encoder from its configuration, as the patch of upstream's ``install.py`` does."""
    bert = importlib.import_module("fastNLP.modules.encoder.bert")

    def from_pretrained(cls: Any, name: Any, *_: Any, **__: Any) -> Any:
        file = bert._get_file_name_base_on_postfix(bert._get_bert_dir(name), ".json")
        return cls(config=bert.BertConfig.from_json_file(file))

    bert.BertModel.from_pretrained = classmethod(from_pretrained)
