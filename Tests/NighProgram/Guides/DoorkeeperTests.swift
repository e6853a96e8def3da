import ChildPrograms
import NighTestKit
import Testing

/// Examples/Doorkeeper, a layer of a session by somebody else.
@Suite("The doorkeeper", .callsPrograms) struct DoorkeeperTests {
    @Test("leaves three knocks to the program, and declines the next ones itself")
    func knocks() throws {
        let program = try BuiltPackages.build("Examples/Doorkeeper") + "/Doorkeeper"
        let house = try Child(
            "/usr/bin/stdbuf", ["-oL", program, "tcp:interface=lo,mdns=off", "Lynx"], reads: true)
        let address = try house.line(with: "open at ").dropFirst("open at ".count)
        let user = NighUser()
        func ping(as name: String) throws -> NighCall {
            try user.run([
                "ping", String(address), "-c", "1", "--name", name, "-t", "tcp:interface=lo,mdns=off",
            ])
        }
        for number in 0..<5 {
            let call = try ping(as: "Otter")
            let reason = number < 3 ? "you are not expected" : "knock at most 3 times a minute"
            #expect(call.status == 1 && call.errors.contains { $0.contains(reason) }, "\(call)")
        }
        #expect(try ping(as: "Lynx").errors.contains { $0.contains("3 times a minute") })
        house.closeInput()
        #expect(try house.end().status == 0)
        #expect(house.lines.count { $0 == "Otter knocks" } == 3)
        #expect(house.lines.last == "3 were turned away")
    }
}
