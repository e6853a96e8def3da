import CPages
import NighCore
import NighWeb

extension WebPage {
    /// The page of `nigh` and `fourinarow`: it offers guests the actions that the program's service and info name.
    public static let ofPrograms = WebPage(
        Dictionary(
            uniqueKeysWithValues: (0..<nigh_page_file_count()).map { index in
                let file = nigh_page_files()[index]
                let bytes = ByteSlice(copying: UnsafeRawBufferPointer(start: file.bytes, count: file.size))
                return (String(cString: file.path), File(type: String(cString: file.type), bytes: bytes))
            }))
}
