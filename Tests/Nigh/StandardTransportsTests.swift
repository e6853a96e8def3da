import NighLoop
import Testing

@Suite("The transports of this package") struct StandardTransportsTests {
    @Test("can each be chosen by name")
    func names() throws {
        for entry in TransportRegistry.standard.entries {
            #expect(try TransportRegistry.standard.makeAll(entry.scheme).map(\.scheme) == [entry.scheme])
        }
        let unknown = #expect(throws: NighError.self) { try TransportRegistry.standard.makeAll("pigeon") }
        #expect(unknown?.description.hasSuffix("known are: bluetooth, memory, nats, tcp") == true)
    }

    @Test("reach other programs, except memory")
    func reach() { #expect(TransportRegistry.standard.reachingOtherPrograms == "bluetooth,tcp") }
}
