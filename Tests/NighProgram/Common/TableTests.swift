import Testing

@testable import nigh

/// Tests the table of commands as a whole.
@Suite(.callsPrograms) struct TableTests {
    @Test("The table of arguments has no contradictions")
    func table() { #expect(NighProgram.table.problems == []) }
}
