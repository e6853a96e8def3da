import Testing

@Suite("A change of the interface", .timeLimit(.minutes(15)))
struct AcknowledgementTests {
    private let fixture = Fixture()

    /// Writes the dump, then a list in docs/reference/stability.md that begins with the entry that `write` printed,
    /// followed by `words`.
    private func acknowledge(_ words: String) throws {
        let (status, lines, errors) = try fixture.api("write")
        try #require(status == 0, "\(errors)")
        let entry = try #require(lines.last)
        try writeList(entry + words)
    }

    private func writeList(_ entry: String) throws {
        try fixture.folder.write(
            """
            | version | plugins | all | what changed |
            | --- | --- | --- | --- |
            \(entry)
            """, to: "docs/reference/stability.md")
    }

    init() throws {
        try fixture.folder.write("1.2.3\n", to: "VERSION")
        try writeList("")
        try fixture.compile(Fixture.files)
        try acknowledge(" the first |")
    }

    @Test func `passes if the dump, the header and the list describe the same interface`() throws {
        let (status, lines, errors) = try fixture.api("check")
        #expect(status == 0)
        #expect(lines + errors == [])
        let header = try fixture.folder.read("Sources/Plugins/Entry/include/nigh_interface.h")
        #expect(header.contains(#"#define NIGH_VERSION "1.2.3""#))
        let fingerprint = try #require(header.firstMatch(of: #/FINGERPRINT "([0-9a-f]{16})"\n/#)).1
        #expect(
            try fixture.folder.read("docs/reference/stability.md").contains("| 1.2.3 | `\(fingerprint)` |"))
    }

    @Test func `is refused until it is recorded and announced, with the lines that differ and what to do`()
        throws
    {
        try fixture.compile(
            Fixture.files(with: "private var weight: Int64", for: "private var weight: Int32"))
        let (status, lines, errors) = try fixture.api("check")
        #expect(status == 1)
        #expect(lines.contains("in Figures > struct Point:"))
        #expect(lines.contains("  - hidden stored var weight: Int32"))
        #expect(lines.contains("  + hidden stored var weight: Int64"))
        #expect(errors.count == 1 && errors.contains { $0.contains("run `make api`") }, "\(errors)")

        let list = try fixture.folder.read("docs/reference/stability.md")
        _ = try fixture.api("write")
        let untold = try fixture.api("check")
        #expect(untold.status == 1)
        #expect(untold.errors.first?.contains("docs/reference/stability.md") == true, "\(untold.errors)")

        try acknowledge(" |")
        #expect(try fixture.api("check").status == 1, "no words")
        #expect(try fixture.folder.read("docs/reference/stability.md") != list)
        try acknowledge(" more weight |")
        #expect(try fixture.api("check").status == 0)
    }

    @Test func `is refused if the header is that of another interface`() throws {
        let path = "Sources/Plugins/Entry/include/nigh_interface.h"
        try fixture.folder.write(fixture.folder.read(path).replacing("1.2.3", with: "1.2.4"), to: path)
        let (status, _, errors) = try fixture.api("check")
        #expect(status == 1)
        #expect(errors.contains { $0.contains(path) }, "\(errors)")
    }
}
