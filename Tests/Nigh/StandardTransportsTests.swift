import NighLoop
import Testing

@Suite("The transports of this package") struct StandardTransportsTests {
    @Test func `can each be chosen by name`() throws {
        let options = ["nats": ":server=nats://localhost:4222", "serial": ":path=/dev/ttyUSB0"]
        for entry in TransportRegistry.standard.entries {
            let spec = entry.scheme + (options[entry.scheme] ?? "")
            #expect(try TransportRegistry.standard.makeAll(spec).map(\.scheme) == [entry.scheme])
            #expect(entry.needsOptions == (options[entry.scheme] != nil))
        }
        let unknown = #expect(throws: NighError.self) { try TransportRegistry.standard.makeAll("pigeon") }
        let known = "known are: bluetooth, memory, nats, serial, tcp, web"
        #expect(unknown?.description.hasSuffix(known) == true)
    }

    @Test func `reach other programs without options, except memory and the one for guests`() {
        #expect(TransportRegistry.standard.reachingOtherPrograms == "bluetooth,tcp")
    }
}
