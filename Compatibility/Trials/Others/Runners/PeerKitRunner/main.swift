import Foundation
import MultipeerConnectivity
import PeerKit

PeerKit.onEvent = { peer, event, object in
    print("\(CommandLine.arguments[1]) got \(event) from \(peer.displayName)")
    Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in exit(0) }
}
PeerKit.onConnect = { _, _ in PeerKit.sendEvent("hello", object: NSString(string: "object")) }
PeerKit.transceive(serviceType: "com-jpsim-test")
RunLoop.main.run(until: Date(timeIntervalSinceNow: 20))
exit(1)
