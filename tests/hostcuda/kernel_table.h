/* Finds the kernels in preprocessed source. */
#ifndef ZC_HOSTCUDA_KERNEL_TABLE_H
#define ZC_HOSTCUDA_KERNEL_TABLE_H

/* Blanks out __global__ and __launch_bounds__(...) in the text; returns the C++ that registers the
 * kernels, to be put behind it. NULL without memory. */
char *hc_kernel_table(char *text);

#endif
