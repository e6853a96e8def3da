import Foundation
import MultiPeer

final class Watcher: MultiPeerDelegate {
    func multiPeer(didReceiveData data: Data, ofType type: UInt32, from peerID: MCPeerID) {
        print("\(CommandLine.arguments[1]) got \(data.convert()) from \(peerID.displayName)")
        DispatchQueue.main.asyncAfter(deadline: .now() + 1) { exit(0) }
    }

    func multiPeer(connectedDevicesChanged devices: [String]) {}
}

let watcher = Watcher()
MultiPeer.instance.delegate = watcher
MultiPeer.instance.initialize(serviceType: "demo-app", deviceName: CommandLine.arguments[1])
MultiPeer.instance.autoConnect()
_ = Timer.scheduledTimer(withTimeInterval: 0.3, repeats: true) { _ in
    if MultiPeer.instance.isConnected { MultiPeer.instance.send(object: "hello", type: 1) }
}
RunLoop.main.run(until: Date(timeIntervalSinceNow: 20))
exit(1)
