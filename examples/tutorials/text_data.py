"""What the transfer-learning scripts have in place of downloads. The text: sentences from the documentation inside two Python packages, with 1 for
those of scikit-learn and 0 for those of pandas. The layer that knows words already: word vectors from latent semantic analysis of the text."""

import importlib
import inspect
import pkgutil
import re

import numpy
import pandas
import tensorflow as tf
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

MODULES = {1: "sklearn", 0: "pandas"}
MOST = 1000  # sentences of each


def sentences():
    """A table with the columns question_text and target, the same each time."""
    rows = [(text, target) for target, package in MODULES.items() for text in _spread(sorted(set(_sentences_of(package))))]
    return pandas.DataFrame(rows, columns=["question_text", "target"])


def layers(texts, embed_size):
    """Take a text each, and give `embed_size` numbers: the mean of its words' vectors."""
    words = tf.keras.layers.TextVectorization(max_tokens=5000, output_sequence_length=40)
    words.adapt(texts)
    known = words.get_vocabulary()
    counts = CountVectorizer(vocabulary={word: index for index, word in enumerate(known)}).transform(texts)
    analysis = TruncatedSVD(embed_size, random_state=0).fit(TfidfTransformer().fit_transform(counts))
    vectors = analysis.components_.T * numpy.sqrt(len(known))
    embedding = tf.keras.layers.Embedding(len(known), embed_size, embeddings_initializer=tf.keras.initializers.Constant(vectors))
    return [tf.keras.Input(shape=(), dtype="string"), words, embedding, tf.keras.layers.GlobalAveragePooling1D()]


def _spread(texts):
    """MOST of them, from the whole alphabet."""
    return [texts[i * len(texts) // MOST] for i in range(MOST)]


def _sentences_of(package):
    for module in _modules_of(package):
        for _, member in inspect.getmembers(module, lambda value: inspect.isclass(value) or inspect.isroutine(value)):
            text = re.sub(r"\s+", " ", (inspect.getdoc(member) or "").split("Examples\n")[0])
            yield from (each for each in re.split(r"(?<=\.) ", text) if 40 <= len(each) <= 200)


def _modules_of(package):
    """Those that can be imported here, but for its tests."""
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.iter_modules(root.__path__, package + "."):
        if "test" in found.name or found.name.rpartition(".")[2].startswith("_"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError:
            continue
