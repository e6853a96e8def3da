import ChildPrograms
import Testing

/// The package in Compatibility, which users add beside Nigh.
@Suite("The package Compatibility", .callsPrograms) struct CompatibilityTests {
    @Test("passes its own tests")
    func own() throws { try BuiltPackages.test("NighCompatibility", in: "Compatibility") }

    @Test("passes its tests of sessions over TCP, too")
    func overTCP() throws {
        try BuiltPackages.test(
            "NighCompatibility", in: "Compatibility", filter: "MultipeerConnectivityTests",
            environment: ["NIGH_TRANSPORTS": "tcp:interface=lo,mdns=embedded"])
    }
}
