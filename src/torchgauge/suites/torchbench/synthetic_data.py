"""Data in the shape of what TorchBench fetches from a bucket, for models that lack nothing else; worker side.

Shapes, counts and layouts are those that upstream's loaders ask for; where a loader takes any, they are those
that PyTorch has published of a run over the true data (its lists of operator inputs). Contents are random,
from the workload's seed: two processes make the same files.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.records import Workload
from torchgauge.records.case import RANDOM_WEIGHTS
from torchgauge.suites.torchbench.checkout_copy import copy_of
from torchgauge.suites.torchbench.data_files import Files, kaldi_matrix, picture

_DATA = "torchbenchmark/data/.data"
_MODELS = "torchbenchmark/models"


@dataclass(frozen=True)
class DataSet:
    """Data that upstream would fetch: the paths below a checkout that it opens, and who writes others there.

    ``{model}`` in a place is the model's name. ``modes`` are those that read it.
    """

    places: tuple[str, ...]
    write: Callable[[Files], None]
    modes: tuple[str, ...] = ("inference", "training")

    def is_in(self, checkout: Path, model: str) -> bool:
        """Whether upstream's own data is there."""
        return all((checkout / place.format(model=model)).exists() for place in self.places)


@dataclass(frozen=True)
class Provided:
    """Where a model is built from, what a row says of its inputs, and files that stand for weights."""

    root: Path
    said: str = ""
    synthetic: bool = False
    without_weights: tuple[Path, ...] = ()


def places_of(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where a checkout holds the data that ``recipe`` declares, below it and with ``{model}``."""
    data_set = DATA_SETS.get(recipe.get("synthetic", ""))
    return tuple(recipe.get("places", ())) if data_set is None else data_set.places


def provide(workload: Workload, recipe: Mapping[str, Any], checkout: Path) -> Provided:
    """The checkout itself where it has the data or nothing may stand for that, else a copy with ours.

    Of ``recipe`` it reads ``synthetic``, a key of :data:`DATA_SETS`, and ``data``, the true files' name.
    Pretrained weights are run over true data alone.
    """
    model, data = workload.model, recipe.get("data", "")
    data_set = DATA_SETS.get(recipe.get("synthetic", ""))
    if data_set is None or workload.mode not in data_set.modes:
        return Provided(checkout)
    if data_set.is_in(checkout, model):
        return Provided(checkout, f"real: {data}")
    if workload.weights != RANDOM_WEIGHTS:
        return Provided(checkout)
    files = Files(copy_of(checkout, model), model, workload.batch, f"{recipe['synthetic']} {workload.seed}")
    data_set.write(files)
    said = f"synthetic, in the shape of {data}"
    return Provided(files.root, said, synthetic=True, without_weights=tuple(files.without_weights))


def _background_matting(files: Files) -> None:
    """Four frames of 512 x 512 with background, mask, four neighbours and another background."""
    folder = f"{_DATA}/Background_Matting_inputs"
    columns = ("image", "back", "seg", "before2", "before1", "after1", "after2", "other")
    lines = [";".join(columns)]
    for number in range(4):
        names = [f"{number}_{column}.png" for column in columns]
        for name in names:
            (files.mask if "_seg" in name else files.image)(f"{folder}/{name}", 512, 512)
        lines.append(";".join(f"{{scriptdir}}/{name}" for name in names))
    files.text(f"{folder}/Video_data_train.csv", "\n".join(lines) + "\n")


def _super_slomo(files: Files) -> None:
    """Clips of twelve frames of 640 x 360, one clip for each item of the batch."""
    for clip in range(max(files.batch, 6)):
        for frame in range(12):
            name = f"{_DATA}/Super_SloMo_inputs/dataset/train/clip{clip:02}/frame{frame:02}.png"
            files.image(name, 640, 360)


def _drq(files: Files) -> None:
    """One observation: nine channels of 84 x 84, uint8, as its mock environment declares."""
    import numpy as np

    pixels = np.frombuffer(files.random.randbytes(9 * 84 * 84), dtype=np.uint8).reshape(9, 84, 84)
    files.data(f"{_MODELS}/drq/obs.pkl", pickle.dumps(pixels))


def _omniglot(files: Files) -> None:
    """Five tasks, each five classes with one image of 28 x 28 to learn from and fifteen to be asked about."""
    import numpy as np
    import torch

    tasks, classes = 5, 5

    def part(shots: int) -> list[Any]:
        count = classes * shots
        pixels = np.frombuffer(files.random.randbytes(tasks * count * 28 * 28), dtype=np.uint8)
        images = (pixels > 229).astype(np.float32).reshape(tasks, count, 1, 28, 28)  # strokes on white
        labels = [files.random.sample([n % classes for n in range(count)], count) for _ in range(tasks)]
        return [images, np.array(labels, dtype=np.int64)]

    torch.save((*part(1), *part(15)), files.path(f"{_MODELS}/maml_omniglot/batch.pt"))


def _horse2zebra(files: Files) -> None:
    """Two unpaired folders of photographs of 256 x 256."""
    for folder in ("trainA", "trainB", "testA", "testB"):
        for number in range(2):
            name = f"{_DATA}/pytorch_CycleGAN_and_pix2pix_inputs/datasets/horse2zebra/{folder}/{number}.png"
            files.image(name, 256, 256)


def _celeba(files: Files) -> None:
    """Portraits of 178 x 218 with five attributes; three are put aside, and a batch has to remain."""
    folder = f"{_DATA}/pytorch_stargan_inputs/data/celeba"
    count = max(files.batch, 16) + 3
    lines = [str(count), "Black_Hair Blond_Hair Brown_Hair Male Young"]
    for number in range(count):
        files.image(f"{folder}/images/{number:06}.png", 178, 218)
        lines.append(" ".join([f"{number:06}.png", *(files.random.choice(("1", "-1")) for _ in range(5))]))
    files.text(f"{folder}/list_attr_celeba.txt", "\n".join(lines) + "\n")


_LENGTHS = (
    (612, 17), (600, 15), (588, 21), (540, 18), (441, 9), (411, 9), (387, 9), (339, 12), (315, 11), (258, 10),
)  # fmt: skip
"""Of ten utterances: frames of 80 features, and characters."""


def _utterances(files: Files) -> None:
    """Ten utterances for each part of a corpus, with features in Kaldi's form and 1014 characters."""
    folder = f"{_DATA}/speech_transformer_inputs/input_data"
    vocabulary = ["<blank>", "<unk>", "<sos>", "<eos>", *(chr(0x4E00 + n) for n in range(1010))]
    lines = [f"{character} {number}" for number, character in enumerate(vocabulary)]
    files.text(f"{folder}/lang_1char/train_chars.txt", "\n".join(lines) + "\n")
    for part in ("train", "dev", "test"):
        utterances, archive = {}, bytearray()
        for number, (frames, characters) in enumerate(_LENGTHS):
            archive += f"{part}{number} ".encode()
            where = f"input_data/{part}/feats.ark:{len(archive)}"
            archive += kaldi_matrix(files.random, frames, 80)
            tokens = [files.random.randrange(4, len(vocabulary)) for _ in range(characters)]
            words = [vocabulary[token] for token in tokens]
            utterances[f"{part}{number}"] = {
                "input": [{"feat": where, "name": "input1", "shape": [frames, 80]}],
                "output": [
                    {
                        "name": "target1",
                        "shape": [characters, len(vocabulary)],
                        "text": "".join(words),
                        "token": " ".join(words),
                        "tokenid": " ".join(map(str, tokens)),
                    }
                ],
            }
        files.data(f"{folder}/{part}/feats.ark", bytes(archive))
        files.text(f"{folder}/{part}/data.json", json.dumps({"utts": utterances}))


_CLASS_WORDS = (
    "person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant - stop_sign"
    " parking_meter bench bird cat dog horse sheep cow elephant bear zebra giraffe - backpack umbrella - -"
    " handbag tie suitcase frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard"
    " surfboard tennis_racket bottle - wine_glass cup fork knife spoon bowl banana apple sandwich orange"
    " broccoli carrot hot_dog pizza donut cake chair couch potted_plant bed - dining_table - - toilet - tv"
    " laptop mouse remote keyboard cell_phone microwave oven toaster sink refrigerator - book clock vase"
    " scissors teddy_bear hair_drier toothbrush"
)
"""COCO's classes in the order of their numbers, from 1; ``-`` is a number that it left out."""
_CLASSES = {
    number: name.replace("_", " ") for number, name in enumerate(_CLASS_WORDS.split(), 1) if name != "-"
}

_PHOTOS = ((640, 427), (640, 480), (480, 640), (640, 444))
"""Width and height of photographs: the longer side has 640 pixels."""


def _photographs(files: Files) -> list[tuple[int, int, bytes]]:
    """Eight photographs with their width and height; a data set shows each of them many times."""
    return [(w, h, picture(files.random, w, h)) for _ in range(2) for w, h in _PHOTOS]


def _coco(files: Files) -> None:
    """A hundred photographs, each with three objects: classes, boxes and outlines."""
    folder = f"{_DATA}/coco2017-minimal/coco"
    photographs = _photographs(files)
    images: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    for number in range(1, 101):
        width, height, photograph = photographs[number % len(photographs)]
        name = f"{number:012}.png"
        files.data(f"{folder}/val2017/{name}", photograph)
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for _ in range(3):
            x, y, w, h = _box(files, width, height)
            objects.append(
                {
                    "id": len(objects) + 1,
                    "image_id": number,
                    "category_id": files.random.choice(list(_CLASSES)),
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": 0,
                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                }
            )
    named = [{"id": number, "name": name, "supercategory": "thing"} for number, name in _CLASSES.items()]
    listed = {"info": {}, "licenses": [], "images": images, "annotations": objects, "categories": named}
    files.text(f"{folder}/annotations/instances_val2017_100.json", json.dumps(listed))


def _coco_and_checkpoint(files: Files) -> None:
    """The photographs, and a checkpoint without weights: the model keeps its random ones."""
    _coco(files)
    files.data(f"{_MODELS}/{{model}}/.data/{{model}}.pkl", pickle.dumps({"model": {}, "__author__": "none"}))


def _coco128(files: Files) -> None:
    """128 photographs with a text of boxes each (class, centre and size as shares), and the lists of them."""
    folder, lines, photographs = f"{_DATA}/coco128", [], _photographs(files)
    for number in range(128):
        width, height, photograph = photographs[number % len(photographs)]
        files.data(f"{folder}/images/train2017/{number:012}.png", photograph)
        boxes = []
        for _ in range(3):
            x, y, w, h = _box(files, width, height)
            shares = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)
            boxes.append(f"{files.random.randrange(80)} " + " ".join(f"{share:.6f}" for share in shares))
        files.text(f"{folder}/labels/train2017/{number:012}.txt", "\n".join(boxes) + "\n")
        lines.append(f"./images/train2017/{number:012}.png")
    files.text(f"{folder}/coco128.txt", "\n".join(lines) + "\n")
    files.text(f"{folder}/coco.names", "\n".join(_CLASSES.values()) + "\n")
    lists = "classes=80\ntrain=./coco128.txt\nvalid=./coco128.txt\nnames=coco.names\n"
    files.text(f"{folder}/coco128.data", lists)


def _box(files: Files, width: int, height: int) -> tuple[int, int, int, int]:
    """A box inside a picture of ``width`` x ``height``: left, top, width and height in pixels."""
    w = files.random.randrange(width // 8, width // 2)
    h = files.random.randrange(height // 8, height // 2)
    return files.random.randrange(width - w), files.random.randrange(height - h), w, h


def _segment_anything(files: Files) -> None:
    """One photograph of 1800 x 1200, and a checkpoint without weights."""
    files.image(f"{_DATA}/sam_inputs/truck.jpg", 1800, 1200)
    files.checkpoint(f"{_MODELS}/{{model}}/.data/sam_vit_h_4b8939.pth")


_COCO = f"{_DATA}/coco2017-minimal"
DATA_SETS = {
    "background_matting": DataSet((f"{_DATA}/Background_Matting_inputs",), _background_matting),
    "super_slomo": DataSet((f"{_DATA}/Super_SloMo_inputs",), _super_slomo),
    "drq": DataSet((f"{_MODELS}/drq/obs.pkl",), _drq),
    "omniglot": DataSet((f"{_MODELS}/maml_omniglot/batch.pt",), _omniglot),
    "horse2zebra": DataSet((f"{_DATA}/pytorch_CycleGAN_and_pix2pix_inputs",), _horse2zebra, ("training",)),
    "celeba": DataSet((f"{_DATA}/pytorch_stargan_inputs",), _celeba),
    "utterances": DataSet((f"{_DATA}/speech_transformer_inputs",), _utterances),
    "coco": DataSet((_COCO,), _coco),
    "coco_checkpoint": DataSet((_COCO, f"{_MODELS}/{{model}}/.data/{{model}}.pkl"), _coco_and_checkpoint),
    "coco128": DataSet((f"{_DATA}/coco128",), _coco128),
    "segment_anything": DataSet(
        (f"{_DATA}/sam_inputs", f"{_MODELS}/{{model}}/.data/sam_vit_h_4b8939.pth"), _segment_anything
    ),
}
"""By the word that the data file uses."""
