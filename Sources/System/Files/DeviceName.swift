import Glibc
import NighCore

extension DisplayName {
    /// Returns the name of this device: its host name up to the first dot. If the host name is empty
    /// or `localhost`, the name in `$USER`.
    public static func ofThisDevice() -> DisplayName {
        let host = hostName()
        if host.isEmpty || host == "localhost", let user = getenv("USER") {
            return DisplayName(fitting: String(cString: user))
        }
        return DisplayName(fitting: host)
    }

    private static func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 257)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
        let bytes = buffer.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: ".")) }.map(UInt8.init(bitPattern:))
        return String(decoding: bytes, as: UTF8.self)
    }
}
