import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighBluetooth

struct DeviceQueryTests {
    /// Without Bluetooth, and by an adapter that does not exist, a query fails in the turn after it began, and reports
    /// that in another turn. It may be stopped in between.
    @Test(arguments: [false, true])
    func aStoppedQueryReportsNothing(isStopped: Bool) {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let monitor = Monitor()
        let notes = Notes()
        loop.execute {
            let query = DeviceQuery(Samples.device, for: "tests", by: Samples.other, on: loop) { _ in
                monitor.change { notes.list.append("ended") }
            }
            loop.execute {
                if isStopped { query.stop() }
                loop.execute { monitor.change { notes.list.append("later") } }
            }
        }
        #expect(monitor.wait(within: .seconds(20)) { notes.list.contains("later") })
        #expect(notes.list == (isStopped ? ["later"] : ["ended", "later"]))
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Notes: @unchecked Sendable {
        var list: [String] = []
    }
}
