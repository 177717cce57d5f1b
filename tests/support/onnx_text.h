/* Models for tests, written in lines of text. Include cmocka.h and what it needs before.
 *
 *   ir 8
 *       IR version (8 unless said)
 *   opset 13 | opset com.foo 1
 *   in x 1 2,N,? | out y 1 - | info v 1 *
 *       name, element type number, dimensions: numbers, names, ? (unnamed); -: rank 0; *: no shape;
 *       element type 0: none; s1: a sequence of f32 tensors, os1: an optional of one
 *   init w 7 2,2 1,2,3,4
 *       int64_data for 7, int32_data for other integers and 9, else float_data
 *   sparse w 1 2,3 0,4 1.5,2.5
 *       dimensions, linear indices, f32 values
 *   node Op a,_,b y name=n domain=d overload=o axis:i=1 ...
 *       _: left out; -: no names; attributes: k:i=1 k:f=0.5 k:s=text k:is=1,2 k:fs=1,2 k:ss=a,b
 *       k:t=7/2/1,2 k:g=G; k:r=attribute/type: reference to a function's attribute; k:n=type: only
 *       the type, no value
 *   graph G ... end
 *       a graph for attributes; before its use
 *   func domain Name a,b y attr1,attr2 [overload] ... end
 *       a function; lines: node, opset, default
 *   default k:i=1
 *       the default of a function's attribute
 */
#ifndef ZC_TESTS_ONNX_TEXT_H
#define ZC_TESTS_ONNX_TEXT_H

#include "base/mem.h"

/* Appends the serialized model. A line that is not understood fails the test. */
void onnx_text(const char *text, zc_buf *out);

#endif
