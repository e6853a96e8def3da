import NighTestKit
import Testing

@testable import NighCore

/// Tests that one of two peers with the same name gets a number.
@Suite struct NumberedNameTests {
    @Test(arguments: [
        ("Puma", "Puma", 1), ("Puma #2", "Puma", 2), ("Puma #999999", "Puma", 999_999),
        ("Puma #1000000", "Puma #1000000", 1), ("Puma #0", "Puma #0", 1), ("Puma #02", "Puma #02", 1),
        ("Puma#2", "Puma#2", 1), ("Puma #", "Puma #", 1), ("Puma #2 #3", "Puma #2", 3), (" #2", "", 2),
    ])
    func onlyAnAppendedNumberIsRecognized(_ name: String, _ stem: String, _ number: Int) {
        let numbered = NumberedName(name)
        #expect(numbered.stem == stem && numbered.number == number)
    }

    @Test func theNextNumberFitsIntoTheLimit() {
        #expect(NumberedName("Puma").next(limit: 63) == "Puma #2")
        #expect(NumberedName("Puma #9").next(limit: 63) == "Puma #10")
        #expect(NumberedName("Puma").next(limit: 7) == "Puma #2")
        #expect(NumberedName("Puma").next(limit: 6) == "Pum #2")
    }

    /// A program that has found "Puma #2" must not end up with a second "Puma".
    @Test func aPeerWithANumberedNameUsesThatName() throws {
        let network = SimulatedNetwork()
        let puma = network.join("Puma")
        let lynx = network.join("Lynx", role: .server)
        try network.run(for: .seconds(1))
        let driver = puma.session.driver
        driver.advertised(as: DisplayName(fitting: "Puma #2"), by: driver.transports[0])
        try network.invite(lynx, from: puma)
        #expect(lynx.peer(puma.id)?.name == "Puma #2")
    }
}
