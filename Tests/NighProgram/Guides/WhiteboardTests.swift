import ChildPrograms
import Testing

/// Examples/Whiteboard, a library that shares its program's session by a channel.
@Suite("The whiteboard", .callsPrograms) struct WhiteboardTests {
    @Test("passes its own test, in virtual time")
    func own() throws { try BuiltPackages.test("Whiteboard", in: "Examples/Whiteboard") }
}
