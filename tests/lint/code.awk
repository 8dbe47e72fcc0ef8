# Blanks what is not code in C files: comments and the insides of strings and characters. Lines keep their numbers.
# Calls code(line) for each line; a script adds that function (awk -f code.awk -f rules.awk).
FNR == 1 { in_comment = 0 }
{
    out = ""
    quote = ""
    size = length($0)
    for (i = 1; i <= size; i++) {
        two = substr($0, i, 2)
        one = substr($0, i, 1)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; i++ }
        } else if (quote != "") {
            if (one == "\\") i++
            else if (one == quote) { quote = ""; out = out one }
        } else if (two == "/*") {
            in_comment = 1
            out = out " "
            i++
        } else if (two == "//") {
            break
        } else {
            if (one == "\"" || one == "'") quote = one
            out = out one
        }
    }
    code(out)
}
