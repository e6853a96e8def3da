import Testing

/// A change to the fixture module's source.
struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let old: String
    let new: String

    init(_ description: String, _ old: String, _ new: String) {
        testDescription = description
        self.old = old
        self.new = new
    }
}

@Suite("The dump of a module's interface", .timeLimit(.minutes(15)))
struct DumpTests {
    @Test(
        "changes with everything that a compiled program relies on",
        arguments: [
            Change("a function more", "public enum Figure {", "public func more() {}\npublic enum Figure {"),
            Change(
                "requirements in another order", "    func open()\n    func close()",
                "    func close()\n    func open()"),
            Change(
                "cases in another order", "case circle\n    case square(Point)",
                "case square(Point)\n    case circle"),
            Change("a private property's type", "private var weight: Int32", "private var weight: Int64"),
            Change(
                "private properties of one size in another order",
                "private var weight: Int32\n    private var colour: Int32",
                "private var colour: Int32\n    private var weight: Int32"),
            Change("a type inside a public one", "var metres: Int32 = 0\n", ""),
            Change("types inside a public one, of one size", "var steps: UInt32", "var steps: Float"),
            Change("a private lazy property", "private lazy var count = 0", "private lazy var count = 0.0"),
            Change("an inlinable body", "x * 2", "x * 3"),
            Change("a default argument", " = 3", ""),
            Change("an error's type", "throws(Failure)", "throws"),
            Change("a conformance", "struct Point: Sendable", "struct Point"),
            Change("isolation", "func grow() async", "func grow()"),
            Change("a generic requirement", "Content: Hashable", "Content: Comparable"),
            Change(
                "slots of an open class in another order", "private func first() {}\n    func second() {}",
                "func second() {}\n    private func first() {}"),
        ])
    func changes(_ change: Change) throws {
        let dump = try Fixture.dump(Fixture.files(with: change.new, for: change.old))
        #expect(try dump != Fixture.original.get())
    }

    @Test(
        "does not change with anything else",
        arguments: [
            Change("a body", "x * Int(weight)", "x + Int(weight)"),
            Change("a comment", "What carries.", "Whatever carries."),
            Change("a comment in an inlinable body", "// Why twice.", "/* What for. */"),
            Change("a body's indentation", "        x * 2", "      x  *  2"),
            Change("another line", "public enum Figure {", "\n\npublic enum Figure {"),
            Change("a hidden function", "struct Depth {", "func hidden() {}\n\nstruct Depth {"),
            Change(
                "a hidden type that lies in nothing", "struct Depth {", "struct Width {}\n\nstruct Depth {"),
            Change(
                "a private computed property", "let depth: Depth",
                "private var y: Int { x }\n    let depth: Depth"),
        ])
    func staysTheSame(_ change: Change) throws {
        let dump = try Fixture.dump(Fixture.files(with: change.new, for: change.old))
        #expect(try dump == Fixture.original.get())
    }

    @Test("does not change when declarations move to another file")
    func movesBetweenFiles() throws {
        let texts = Fixture.files.sorted { $0.key > $1.key }.map(\.value)
        #expect(try Fixture.dump(["All.swift": texts.joined(separator: "\n\n")]) == Fixture.original.get())
    }

    @Test("lists the reachable declarations and the memory layout, one declaration per line")
    func isReadable() throws {
        let original = try Fixture.original.get().map {
            $0.replacing(#/inlinable\(.{8}\)/#, with: "inlinable(…)")
        }
        #expect(
            original == [
                "func join(_ left: Int, by right: Int = 3) throws(Failure)",
                "struct Failure: Error, Sendable  // 0 bytes, aligned to 1",
                "enum Figure  // 25 bytes, aligned to 8",
                "    case circle",
                "    case square(Point)",
                "final class Leaf<Content> where Content : Hashable",
                "    hidden stored let content: Content",
                "    hidden stored var $__lazy_storage_$_count: Swift.Int?",
                "    func grow() async",
                "    init(_ content: Content)",
                "open class Node",
                "    slot init()",
                "    slot func first()",
                "    slot func second()",
                "    slot final func aside()",
                "    init()",
                "struct Point: Sendable  // 24 bytes, aligned to 8",
                "    stored var x: Int",
                "    hidden stored var weight: Int32",
                "    hidden stored var colour: Int32",
                "    hidden stored let depth: Depth",
                "    init(x: Int)",
                "    func length() -> Int",
                "    @inlinable(…) func twice() -> Int",
                "protocol Wire",
                "    requirement func open()",
                "    requirement func close()",
                "hidden struct Depth",
                "    stored var metres: Int32",
                "    stored var steps: UInt32",
            ])
    }
}
