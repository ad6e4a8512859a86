# Lists the programs that stand as text in a test file of another project: `name` and `text` of the file are given.
import ast
import re
import textwrap

# What a program does; a text without any of it is a name, a number or a sentence.
DOES = (ast.Call, ast.Attribute, ast.Import, ast.ImportFrom, ast.While, ast.For, ast.ListComp, ast.FunctionDef, ast.ClassDef)
result = []


def keep(program):
    program = textwrap.dedent(program).strip()
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if program not in result and any(isinstance(node, DOES) for node in ast.walk(tree)):
        result.append(program)


def of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            keep(node.value)


def of_rust(text):
    # Modules that a macro makes a test of each.
    for module in re.findall(r'_blocked!\(\w+, "([\w.]+)"\)', text):
        keep("import " + module)
    for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.S):
        try:
            command = ast.literal_eval('"' + literal.replace("\\\n", "\\n").replace("\n", "\\n") + '"')
        except (SyntaxError, ValueError):
            continue
        _, found, program = command.partition('python3 -c "')
        if found:
            keep(program.rpartition('"')[0].replace('\\"', '"').replace("\\$", "$"))
        for program in re.findall(r"<<\s*'?EOF'?\n(.*?)\nEOF", command, re.S):
            keep(program)


(of_python if name.endswith(".py") else of_rust)(text)
