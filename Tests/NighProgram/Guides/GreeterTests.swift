import ChildPrograms
import Testing

/// Examples/Greeter, which the guide "Actors on other devices" begins with.
@Suite("The greeter", .callsPrograms) struct GreeterTests {
    @Test("compiles")
    func compiles() throws { _ = try BuiltPackages.build("Examples/Greeter") }
}
