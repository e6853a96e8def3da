import Testing

@testable import mutants

/// Tests which places of a source are changed, and which are not.
struct SiteFinderTests {
    private func changes(_ source: String) -> [String] {
        SiteFinder.sites(in: Array(source.utf8), file: "A.swift").map(\.change)
    }

    /// Returns `source` with all its changes, numbered from 1.
    private func rewritten(_ source: String) -> String {
        let bytes = Array(source.utf8)
        let edits = SiteFinder.sites(in: bytes, file: "A.swift").enumerated().flatMap {
            $0.element.edits($0.offset + 1)
        }
        return String(decoding: Schema.applying(edits, to: bytes), as: UTF8.self)
    }

    @Test(arguments: [
        "// a < b, 3, true", "/* a < b /* 3 */ true */", "let a = \"b < 3 \\(c + 4 + f(\"x\" + \"5\"))\"",
        "let a = #\"b < 3 \"# ", "let a = \"\"\"\n    b < 3 \"\n    \"\"\"",
        "@available(macOS 14, *) func a()",
        "@inline(__always) var a: Int", "a.0", "let a: InlineArray<2, Int>", "a: Set<Int>",
        "static func < (a: A, b: A) -> Bool",
        "guarded(a == nil, nil != b)", "switch a { case 3, 0..<5: b }",
        "enum A {\n case a = 3\n case b = 4\n }",
        "import A.true", "#if a && b\n#endif", "let a = b ?? c", "a.min(b)", "let a = b -> c", "let a = -b",
        "let a = 1.5",
        "{ if let a { b } }", "{ if case .b = a { c } }", "repeat { a } while let b = c",
    ])
    func `Code without sites is unchanged`(_ source: String) {
        #expect(changes(source) == [], "\(source)")
        #expect(rewritten(source) == source)
    }

    @Test(arguments: [
        ("x(a < b)", "`<` becomes `<=`", "x(a ⇄↑ b)"), ("x(a && b)", "`&&` becomes `||`", "x(a ⇄↑ b)"),
        ("x(a &+ b)", "`&+` becomes `&-`", "x(a ⇄↑ b)"), ("x(a === b)", "`===` becomes `!==`", "x(a ⇄↑ b)"),
        ("x(!a.b)", "`!` is left out", "x(⇄↑a.b)"),
        ("let a = 64", "`64` becomes 63", "let a = mutantLess(1, 64)"),
        ("let a = 0x0F", "`0x0F` becomes 16", "let a = mutantMore(1, 0x0F)"),
        ("let a = true", "`true` becomes `false`", "let a = mutantTruth(1, true)"),
        ("let a = max(b, c)", "`max` becomes `min`", "let a = mutantMax(1, b, c)"),
        (
            "{ guard let a, b() else { return } }", "`b()` is negated",
            "{ guard let a, mutantTruth(1, b()) else { return } }"
        ),
        ("{\n    a.b(c)\n}", "the statement is left out", "{\n    if mutantIsOff(1) { a.b(c) }\n}"),
        (
            "{\n    a.b = c(\n        d)\n}", "the statement is left out",
            "{\n    if mutantIsOff(1) { a.b = c(\n        d) }\n}"
        ),
        (
            "{\n    a\n        .b()\n    return\n}", "the statement is left out",
            "{\n    if mutantIsOff(1) { a\n        .b() }\n    return\n}"
        ),
        ("switch a { case .b where c > d: e }", "`>` becomes `>=`", "switch a { case .b where c ⇄↑ d: e }"),
    ])
    func `Each site is mutated`(_ source: String, _ change: String, _ result: String) {
        #expect(changes(source) == [change])
        #expect(rewritten(source) == result)
    }

    /// One place may be inside another: the outer one encloses the inner one, and the line numbers stay the same.
    @Test func `Nested sites are mutated`() {
        #expect(
            rewritten("{\n    if !a, b < 3 { c() }\n    d = !e\n}")
                == "{\n    if mutantTruth(1, ⇄↓a), mutantTruth(2, b ⇄↔ mutantMore(5, 3)) { c() }\n"
                + "    if mutantIsOff(6) { d = ⇄↗e }\n}")
    }

    @Test func `Equal mutations on one line are numbered`() {
        #expect(changes("x(a < b, c < d)") == ["`<` becomes `<=`", "`<` becomes `<=` (2)"])
    }
}
