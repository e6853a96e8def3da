import ChildPrograms
import Testing

@Suite("The dump of a module's interface", .timeLimit(.minutes(15)))
struct DumpTests {
    @Test(arguments: [
        ("a function more", "public enum Figure {", "public func more() {}\npublic enum Figure {"),
        (
            "requirements in another order", "    func open()\n    func close()",
            "    func close()\n    func open()"
        ),
        (
            "cases in another order", "case circle\n    case square(Point)",
            "case square(Point)\n    case circle"
        ),
        ("a private property's type", "private var weight: Int32", "private var weight: Int64"),
        (
            "private properties of one size in another order",
            "private var weight: Int32\n    private var colour: Int32",
            "private var colour: Int32\n    private var weight: Int32"
        ),
        ("a type inside a public one", "var metres: Int32 = 0\n", ""),
        ("types inside a public one, of one size", "var steps: UInt32", "var steps: Float"),
        ("a private lazy property", "private lazy var count = 0", "private lazy var count = 0.0"),
        ("an inlinable body", "x * 2", "x * 3"),
        ("a default argument", " = 3", ""),
        ("an error's type", "throws(Failure)", "throws"),
        ("a conformance", "struct Point: Sendable", "struct Point"),
        ("isolation", "func grow() async", "func grow()"),
        ("a generic requirement", "Content: Hashable", "Content: Comparable"),
        (
            "slots of an open class in another order", "private func first() {}\n    func second() {}",
            "func second() {}\n    private func first() {}"
        ),
    ])
    func `changes with everything that a compiled program relies on`(
        _ what: String, _ old: String, _ new: String
    ) throws {
        let dump = try Fixture.dump(Fixture.files(with: new, for: old))
        #expect(try dump != Fixture.original.get(), "\(what)")
    }

    @Test(arguments: [
        ("a body", "x * Int(weight)", "x + Int(weight)"),
        ("a comment", "A carrier.", "Any carrier."),
        ("a comment in an inlinable body", "// Why twice.", "/* What for. */"),
        ("a body's indentation", "        x * 2", "      x  *  2"),
        ("another line", "public enum Figure {", "\n\npublic enum Figure {"),
        ("a hidden function", "struct Depth {", "func hidden() {}\n\nstruct Depth {"),
        (
            "a hidden type that lies in nothing", "struct Depth {", "struct Width {}\n\nstruct Depth {"
        ),
        (
            "a private computed property", "let depth: Depth",
            "private var y: Int { x }\n    let depth: Depth"
        ),
    ])
    func `does not change with anything else`(_ what: String, _ old: String, _ new: String) throws {
        let dump = try Fixture.dump(Fixture.files(with: new, for: old))
        #expect(try dump == Fixture.original.get(), "\(what)")
    }

    @Test func `does not change when declarations move to another file`() throws {
        let texts = Fixture.files.sorted { $0.key > $1.key }.map(\.value)
        #expect(try Fixture.dump(["All.swift": texts.joined(separator: "\n\n")]) == Fixture.original.get())
    }

    @Test func `lists the reachable declarations and the memory layout, one declaration per line`() throws {
        let lines = try Fixture.original.get().map {
            "\($0.replacing(#/inlinable\(.{8}\)/#, with: "inlinable(…)"))\n"
        }
        #expect(try Snapshots.differences(of: ["figures.txt": lines.joined()], from: "API/Snapshots") == [])
    }
}
