import NighCore
import NighMemory
import Testing

struct FaultPlanTests {
    @Test func `A spec is read and written back`() throws {
        let text =
            "delay=200ms,jitter=50us,rate=65536,split=7,flip=1/100000,loss=1/50,loss-burst=8,"
            + "duplicate=1/9,reorder=1/7,mtu=1300,rebind=3s,stall-after=1s,stall-for=2m,"
            + "vanish-after=3s,cut=1/20,cut-after=5s,cut-after-bytes=1024,direction=out,refuse=1/3,hang=all,"
            + "dial-delay=1s,seed=7"
        let plan = try FaultPlan(parsing: text)
        #expect(plan.delay == .milliseconds(200))
        #expect(plan.bytesPerSecond == 65_536)
        #expect(plan.stallFor == .seconds(120))
        #expect(plan.direction == .outgoing)
        #expect(plan.hang == .all)
        #expect(plan.lossBurst == 8 && plan.reorder == .init(1, outOf: 7))
        #expect(plan.packetLimit == 1_300 && plan.rebind == .seconds(3))
        #expect(plan.description == text)
        #expect(try FaultPlan(parsing: "rate=64k,split=1m").description == "rate=65536,split=1048576")
    }

    @Test func `Bit rates and percentages are parsed`() throws {
        let plan = try FaultPlan(parsing: "rate=64kbit,cut=5%,flip=0.01%,refuse=100%")
        #expect(plan.bytesPerSecond == 8_000)
        #expect(plan.cut == .init(1, outOf: 20))
        #expect(plan.flip == .init(1, outOf: 10_000))
        #expect(plan.refuse == .all)
        #expect(try FaultPlan(parsing: "rate=1mbit").bytesPerSecond == 125_000)
    }

    @Test func `Every key is explained`() throws {
        #expect(FaultPlan.guide.count == 22)
        #expect(FaultPlan.guide.allSatisfy { !$0.value.isEmpty && !$0.meaning.isEmpty })
    }

    @Test func `An empty plan has no faults`() throws {
        #expect(try FaultPlan(parsing: "") == .none)
        #expect(FaultPlan.none.description == "")
    }

    @Test(arguments: [
        ("dely=5s", "known are: cut, cut-after, cut-after-bytes, delay,"),
        ("delay", "faults are written key=value"),
        ("delay=5", "write a time such as 200ms"),
        ("delay=-5s", "write a time"),
        ("delay=99999999999999999m", "write a time"),
        ("rate=0", "at least 1"),
        ("rate=9999999999999999m", "write bytes a second"),
        ("rate=7bit", "at least 1 byte"),
        ("rate=64kbps", "or bits as in 64kbit"),
        ("cut=0%", "write odds such as 1/100"),
        ("cut=101%", "write odds such as 1/100"),
        ("cut=5.%", "write odds such as 1/100"),
        ("cut=.5%", "write odds such as 1/100"),
        ("cut=%", "write odds such as 1/100"),
        ("flip=2/1", "write odds such as 1/100"),
        ("direction=up", "write out, in or both"),
        ("loss-burst=0", "write a number of packets"),
        ("loss-burst=70000", "write a number of packets"),
        ("seed=x", "write a whole number"),
        ("seed=1,seed=2", "given twice"),
        ("delay=1s,", "faults are written key=value"),
    ])
    func `Invalid plans are reported`(_ text: String, _ words: String) {
        let error = #expect(throws: NighError.self) { try FaultPlan(parsing: text) }
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
    }
}
