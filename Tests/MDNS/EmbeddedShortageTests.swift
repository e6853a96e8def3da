import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Tests Avahi's stack in this process when few descriptors are left.
struct EmbeddedShortageTests {
    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func `A lack of descriptors does not stop the program`() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            ResourceLimits.limitDescriptors()
            var (failed, ran) = (0, 0)
            for count in Int32(0)..<16 {
                let witness = BackendWitness()
                ResourceLimits.limitDescriptors(leaving: count)
                let embedded = AvahiEmbedded(on: loop, interface: "lo")
                loop.execute { embedded.start(witness) }
                #expect(
                    witness.monitor.wait(within: .seconds(20)) { witness.isUp || !witness.errors.isEmpty })
                if witness.isUp { ran += 1 } else { failed += 1 }
                for error in witness.errors {
                    #expect(error.advice?.contains("ulimit -n") == true, "\(error)")
                }
                let done = BackendWitness()
                loop.execute {
                    embedded.shutdown()
                    done.monitor.change { done.isUp = true }
                }
                #expect(done.monitor.wait(within: .seconds(20)) { done.isUp })
            }
            #expect(failed > 0 && ran > 0)
            loop.shutdown()
        }
    }
}
