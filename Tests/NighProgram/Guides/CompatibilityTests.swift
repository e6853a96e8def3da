import ChildPrograms
import Testing

/// The package in Compatibility, which users add beside Nigh.
@Suite("The package Compatibility", .callsPrograms) struct CompatibilityTests {
    @Test("passes its own tests")
    func own() throws { try BuiltPackages.test("Compatibility") }
}
