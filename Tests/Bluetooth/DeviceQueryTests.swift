import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighBluetooth

struct DeviceQueryTests {
    /// Without Bluetooth, and by an adapter that does not exist, a query fails in the turn after it began, and reports
    /// that in another turn. It may be stopped in between.
    @Test(arguments: [false, true])
    func `A stopped query reports nothing`(isStopped: Bool) throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let notes = Guarded<[String]>([])
        try waitForReply { reply in
            loop.execute {
                let query = DeviceQuery(Samples.device, for: "tests", by: Samples.other, on: loop) { _ in
                    notes.withLock { $0.append("ended") }
                }
                loop.later {
                    if isStopped { query.stop() }
                    loop.execute { reply(()) }
                }
            }
        }
        #expect(notes.withLock { $0 } == (isStopped ? [] : ["ended"]))
    }
}
