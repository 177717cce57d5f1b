/* Random numbers: Philox 4x32-10, a function of a key and an element's index, so that results
 * depend neither on threads nor on the order of evaluation, and any device can compute them.
 *
 * The key of an operation comes from its attribute `seed`; without one, from a fixed constant and
 * the node's name, so that nodes differ and yet every run gives the same numbers. */
#ifndef ZC_CPU_RANDOM_H
#define ZC_CPU_RANDOM_H

#include "cpu/kernel.h"

/* Key of a seed's bits. */
uint64_t zc_random_key(uint64_t seed);
/* Key of a node without a seed. */
uint64_t zc_random_key_of(const zc_kctx *k);

/* 64 random bits of element i. */
uint64_t zc_random_bits(uint64_t key, uint64_t i);
/* Uniform in [0, 1). */
double zc_random_uniform(uint64_t key, uint64_t i);
/* Normal with mean 0 and variance 1. */
double zc_random_normal(uint64_t key, uint64_t i);

#endif
