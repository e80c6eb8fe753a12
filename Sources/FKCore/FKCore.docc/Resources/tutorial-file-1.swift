import FKCore
import Foundation

let urls = Array(CommandLine.arguments.dropFirst())
let folder = URL(fileURLWithPath: "files")
