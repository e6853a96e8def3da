import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Tests `.ci/floors`, which checks that no layer of Core uses one above it.
@Suite("Core's floors", .timeLimit(.minutes(15)))
struct FloorsTests {
    private let folder = TemporaryFolder()
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        .standardizedFileURL.path

    private func check(_ path: String) throws -> (status: Int32, errors: [String]) {
        try Child("\(Self.root)/.ci/floors", [path]).end()
    }

    private func write(_ text: String, to path: String) throws {
        let file = URL(filePath: "\(folder.path)/\(path)")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
    }

    @Test("No floor uses a floor above it")
    func today() throws {
        let (status, errors) = try check("\(Self.root)/Sources/Core")
        #expect(status == 0 && errors == [])
    }

    @Test("A type or a function of a higher floor is refused, with the file that uses it")
    func upwards() throws {
        try write(
            "struct SessionState {}\nfunc currentState() -> Int { 1 }", to: "Session/Machine/State.swift")
        for use in ["let state: SessionState?", "func f() { currentState() }"] {
            try write(use, to: "Wire/Use.swift")
            let (status, errors) = try check(folder.path)
            #expect(status == 1, "\(use)")
            #expect(errors.count == 1 && errors[0].contains("Wire/Use.swift uses "), "\(errors)")
            #expect(errors.first?.contains("of Session/Machine, a floor above Wire") == true, "\(errors)")
        }
    }

    @Test("Declarations of a lower floor may be used, and a name in a comment or a string is no use")
    func downwards() throws {
        try write("struct SessionState {}", to: "Session/Machine/State.swift")
        try write("struct Frame {}", to: "Wire/Frame.swift")
        try write("struct Use { let frame: Frame }", to: "Session/Driver/Use.swift")
        try write(
            """
            // Of SessionState.
            /// And of ``SessionState``.
            let words = "SessionState"
            struct Outer {
                struct SessionState {}
            }
            """, to: "Wire/Words.swift")
        let (status, errors) = try check(folder.path)
        #expect(status == 0, "\(errors)")
    }

    @Test("A folder that is not a floor is refused")
    func unknown() throws {
        try write("struct Thing {}", to: "Attic/Thing.swift")
        let (status, errors) = try check(folder.path)
        #expect(status == 1 && errors.first?.contains("Attic is no floor") == true, "\(errors)")
    }
}
