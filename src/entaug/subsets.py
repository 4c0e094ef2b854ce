"""stub"""
from random import Random
DRAWS={"first":1,"progressive":1,"fraction":1,"stratified":1}
def draw(how,corpus,sizes,seed=0):
    o=list(range(len(corpus))); Random(seed).shuffle(o)
    return {n:[corpus[i] for i in sorted(o[:n])] for n in sizes}
