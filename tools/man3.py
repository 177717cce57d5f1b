#!/usr/bin/env python3
"""usage: man3.py OUT VERSION HEADER...: man pages of section 3 from the installed headers.

One page a header (zc_rt.h.3), one a type and one a function, which is the comment before it; functions that
stand together under one comment share its text. The headers are the source: what is wrong in a page is mended there."""
import os
import re
import shutil
import sys


def blocks(text):
    """The header as (comment, declaration) pairs in order; a declaration without a comment of its own, and no empty
    line before it, has the one before."""
    comment, at = '', 0
    token = re.compile(r'[ \t]*/\*(.*?)\*/[ \t]*\n|[ \t]*#[^\n]*(?:\\\n[^\n]*)*\n|(\n+)', re.S)
    while at < len(text):
        m = token.match(text, at)
        if m:
            if m.group(1) is not None:
                comment = m.group(1)
            elif m.group(2):
                comment = ''
            at = m.end()
            continue
        end, depth = at, 0
        while True:
            c = text[end]
            if text.startswith('/*', end):
                end = text.index('*/', end) + 2
                continue
            depth += (c == '{') - (c == '}')
            end += 1
            if depth == 0 and (c == ';' or (c == '}' and text[at:].startswith(('static', 'extern')))):
                break
        yield comment, text[at:end]
        at = text.index('\n', end - 1) + 1 if '\n' in text[end - 1:] else len(text)


def prose(comment):
    """Paragraphs and lists of a comment, as roff."""
    lines = [re.sub(r'^ ?\* ?', '', line.strip()) for line in comment.strip().split('\n')]
    out, paragraph = [], []

    def flush():
        if paragraph:
            out.append('.PP\n' + escape(' '.join(paragraph)))
            paragraph.clear()
    for line in lines:
        if not line.strip():
            flush()
        elif line.lstrip().startswith('- '):
            flush()
            out.append('.IP \\(bu 2\n' + escape(line.strip()[2:]))
        elif out and out[-1].startswith('.IP') and not paragraph:
            out[-1] += '\n' + escape(line.strip())
        else:
            paragraph.append(line.strip())
    flush()
    return '\n'.join(out)


def escape(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\n'.join('\\&' + line if line[:1] in ".'" else line for line in text.split('\n'))


def verbatim(code):
    return '.nf\n.RS\n' + escape(code.rstrip()) + '\n.RE\n.fi'


def summary(comment, name):
    text = ' '.join(re.sub(r'^ ?\* ?', '', line.strip()) for line in comment.strip().split('\n'))
    first = re.split(r'(?<=[a-z0-9)"])[.:;](?: |$)', text)[0].strip()
    return first[:1].lower() + first[1:] if first else name.replace('_', ' ')


def page(out, name, version, header, comment, code, also):
    with open(os.path.join(out, name + '.3'), 'w') as f:
        f.write('.TH "%s" 3 "" "zc %s" "zc"\n.SH NAME\n%s \\- %s\n' %
                (name, version, name, escape(summary(comment, name))))
        f.write('.SH SYNOPSIS\n' + verbatim('#include <zc/%s>\n\n%s' % (header, code)) + '\n')
        if comment.strip():
            f.write('.SH DESCRIPTION\n' + prose(comment) + '\n')
        f.write('.SH SEE ALSO\n' + ',\n'.join('.BR %s (3)' % a for a in also).replace(',\n', ' ,\n') + '\n')


def header_page_name(header):
    return header if header == 'zc.h' else 'zc_' + header


def name_of(code):
    """(name, kind) of a declaration; None: no page."""
    m = re.search(r'ZC_API[^;(]*?\b(zc_\w+)\(', code)
    if m:
        return m.group(1), 'function'
    m = re.match(r'static inline [^(]*?\b(zc_\w+)\(', code)
    if m:
        return m.group(1), 'inline'
    m = re.search(r'^typedef (?:struct|enum) (zc_\w+)', code) or re.search(r'^typedef \w+ (zc_\w+);', code)
    if m:
        return m.group(1), 'type'
    m = re.search(r'^typedef .*\(\*(zc_\w+)\)', code, re.S)
    return (m.group(1), 'type') if m else None


def prototype(code, kind):
    if code.startswith('ZC_API '):
        code = code.replace('\n       ', '\n').replace('ZC_API ', '')
    return code[:code.index('{')].rstrip() + ';' if kind == 'inline' else code


def one_header(out, version, path):
    header = os.path.basename(path)
    with open(path) as f:
        text = f.read()
    top = re.match(r'/\*(.*?)\*/', text, re.S)
    # What is for C++, and the parameter macros, have no pages.
    body = re.sub(r'#ifdef __cplusplus.*?#endif\n|#ifndef __cplusplus.*', '', text[top.end():], flags=re.S)
    listed, pending = [], []
    for comment, code in blocks(body):
        found = name_of(code)
        if not found:
            continue
        name, kind = found
        listed.append(name)
        # The inline form of a _fill function is that function's.
        if kind == 'inline' and pending and not comment.strip():
            comment = pending[-1]
        pending.append(comment)
        page(out, name, version, header, comment, prototype(code, kind), [header_page_name(header)])
    page(out, header_page_name(header), version, header, top.group(1), '', listed or ['zc_rt.h'])


def main():
    out, version, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for path in headers:
        one_header(out, version, path)


main()
