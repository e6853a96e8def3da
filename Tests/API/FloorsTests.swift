import ChildPrograms
import Testing

/// Tests `.ci/floors`, which checks that no layer of Core uses one above it.
@Suite(.timeLimit(.minutes(15))) struct FloorsTests {
    private let folder = RepositoryFolder()

    /// Expects that the check finds nothing in the folder, or one use with these words about it.
    private func expect(_ words: String..., in path: String? = nil) throws {
        let (status, _, errors) = try RepositoryFolder.run("floors", [path ?? folder.path])
        #expect(status == (words.isEmpty ? 0 : 1) && errors.count == (words.isEmpty ? 0 : 1), "\(errors)")
        for word in words { #expect(errors.first?.contains(word) == true, "\(errors)") }
    }

    @Test func `No floor uses a floor above it`() throws {
        try expect(in: "\(BuiltPackages.root)/Sources/Core")
    }

    @Test(arguments: ["let state: SessionState?", "func f() { currentState() }"])
    func `What is of a higher floor is refused, with the file that uses it`(_ use: String) throws {
        try folder.write(
            "struct SessionState {}\nfunc currentState() -> Int { 1 }", to: "Session/Machine/State.swift")
        try folder.write(use, to: "Wire/Use.swift")
        try expect("Wire/Use.swift uses ", "of Session/Machine, a floor above Wire")
    }

    @Test func `Lower floors may be used, and a name in a comment or a string is no use`() throws {
        try folder.write("struct SessionState {}", to: "Session/Machine/State.swift")
        try folder.write("struct Frame {}", to: "Wire/Frame.swift")
        try folder.write("struct Use { let frame: Frame }", to: "Session/Driver/Use.swift")
        try folder.write(
            """
            // Of SessionState.
            /// And of ``SessionState``.
            let words = "SessionState"
            struct Outer {
                struct SessionState {}
            }
            """, to: "Wire/Words.swift")
        try expect()
    }

    @Test func `A folder that is not a floor is refused`() throws {
        try folder.write("struct Thing {}", to: "Attic/Thing.swift")
        try expect("Attic is no floor")
    }
}
